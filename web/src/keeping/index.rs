//! The list of what is kept: a line with version and check sum, then JSON.

use braid_app::files::memory::Inventory;
use serde::{Deserialize, Serialize};

const VERSION: &str = "1";

/// A list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Index {
    /// Commits up to this one.
    pub(super) count: u64,
    /// The tree.
    pub(super) inventory: Inventory,
}

/// FNV-1a, 64 bits: it tells a file that was cut short, nothing more is asked of it.
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Index {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let list = serde_json::to_vec(self).expect("numbers, texts and lists of them are JSON");
        let mut bytes = format!("braid files {VERSION} {:016x}\n", sum(&list)).into_bytes();
        bytes.extend(list);
        bytes
    }

    /// `None`: it was cut short.
    ///
    /// # Errors
    /// If it is whole, and of another version.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, String> {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let Some((head, list)) = end.map(|end| (&bytes[..end], &bytes[end + 1..])) else {
            return Ok(None);
        };
        let head = String::from_utf8_lossy(head);
        let mut words = head.split(' ').skip(2);
        let (version, check) = (words.next(), words.next());
        if check != Some(&format!("{:016x}", sum(list))) {
            return Ok(None);
        }
        if version != Some(VERSION) {
            let version = version.unwrap_or_default();
            return Err(format!(
                "what is kept was written by another version of Braid (its list has version {version}, this one knows \
                 {VERSION}), and is left as it is"
            ));
        }
        Ok(serde_json::from_slice(list).ok())
    }
}
