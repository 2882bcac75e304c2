//! Keeping the worker's files in a storage that can only write, read and remove whole files of its own.
//!
//! ```text
//! f12 f13 ..         content of the files with these numbers (see `braid_app::files::memory`); they only grow
//! index-0 index-1    paths, numbers and lengths of all files, and a check sum: the valid one with the higher count holds
//! ```
//!
//! First contents are written, then the older index is replaced, then what no index names is removed. So whenever a tab is
//! closed or killed, what is there is the tree of the last commit or of the one before: all of it.

mod index;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::rc::Rc;

use braid_app::files::memory::{self, Inventory};

use index::Index;

/// Files of at most so many bytes stay in memory once they are there: configurations, states, names of checkpoints.
const SMALL: u64 = 64 << 10;

/// Longer than any file.
const ALL: u64 = 1 << 53;

/// Why something could not be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// There is no room.
    Full,
    /// Anything else, in the browser's words.
    Other(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("there is no room"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

/// A flat folder of files.
#[expect(async_fn_in_trait, reason = "a worker has one thread")]
pub trait Blobs {
    /// Names of all files.
    async fn names(&self) -> Result<Vec<String>, Trouble>;
    /// Bytes of a file from some byte on; fewer if it ends before.
    async fn read(&self, name: &str, from: u64, bytes: u64) -> Result<Vec<u8>, Trouble>;
    /// Replace all of a file from some byte on; it is made if it is not there. Returns when it is on the disk.
    async fn write(&self, name: &str, from: u64, bytes: &[u8]) -> Result<(), Trouble>;
    /// Remove a file.
    async fn remove(&self, name: &str) -> Result<(), Trouble>;
}

/// Copies this thread's tree of files to a storage.
#[derive(Debug)]
pub struct Keeper<B> {
    blobs: Rc<B>,
    /// Commits so far, over all starts.
    count: u64,
    /// Bytes of each file, by its number, that the storage has.
    stored: BTreeMap<u64, u64>,
    /// State of the tree at the last commit.
    seen: u64,
}

fn blob(number: u64) -> String {
    format!("f{number}")
}

fn number(name: &str) -> Option<u64> {
    name.strip_prefix('f')?.parse().ok()
}

fn slot(count: u64) -> String {
    format!("index-{}", count % 2)
}

impl<B: Blobs + 'static> Keeper<B> {
    /// Make this thread's tree that of the storage; contents stay there until they are asked for.
    ///
    /// # Errors
    /// If the storage cannot be read, or holds something that this program does not understand: it is left as it is.
    pub async fn open(blobs: B) -> Result<Self, String> {
        let blobs = Rc::new(blobs);
        let words = |trouble: Trouble| trouble.to_string();
        let names: BTreeSet<String> = blobs.names().await.map_err(words)?.into_iter().collect();
        let (mut newest, mut unread) = (None::<Index>, 0);
        for name in [slot(0), slot(1)] {
            if !names.contains(&name) {
                continue;
            }
            match Index::read(&blobs.read(&name, 0, ALL).await.map_err(words)?)? {
                Some(index) if newest.as_ref().is_none_or(|old| old.count < index.count) => {
                    newest = Some(index);
                }
                Some(_) => {}
                None => unread += 1,
            }
        }
        // One that is torn is what a kill leaves in the first commit; never both.
        if newest.is_none() && unread > 1 {
            return Err(
                "the list of what is kept is damaged; clear this site's data in the browser to begin anew".into(),
            );
        }
        let Index {
            count,
            mut inventory,
        } = newest.unwrap_or_default();
        inventory
            .files
            .retain(|file| file.bytes == 0 || names.contains(&blob(file.number)));
        let others = names.iter().filter_map(|name| number(name));
        inventory.next = others.fold(inventory.next, |next, other| next.max(other + 1));
        let restored = memory::restore(&inventory, Some(fetch(&blobs)));
        restored.map_err(|error| format!("the list of what is kept is damaged: {error}"))?;
        let stored: BTreeMap<u64, u64> = inventory
            .files
            .iter()
            .map(|file| (file.number, file.bytes))
            .collect();
        let keeper = Self {
            blobs,
            count,
            stored,
            seen: memory::changes(),
        };
        keeper
            .clean(names.iter().filter_map(|name| number(name)))
            .await;
        Ok(keeper)
    }

    /// Whether there is something to commit.
    #[must_use]
    pub fn is_due(&self) -> bool {
        memory::changes() != self.seen
    }

    /// Make the storage what the tree is now; large contents leave the memory then.
    ///
    /// # Errors
    /// If the storage refuses: it has the tree of the last commit, and nothing leaves the memory.
    pub async fn commit(&mut self) -> Result<(), Trouble> {
        let seen = memory::changes();
        let (inventory, files) = memory::inventory();
        let mut begun = Vec::new();
        let written = self.write(&inventory, &files, &mut begun).await;
        if let Err(trouble) = written {
            // What no index names only takes room.
            self.clean(begun.into_iter()).await;
            return Err(trouble);
        }
        self.count += 1;
        let before = std::mem::take(&mut self.stored);
        self.stored = inventory
            .files
            .iter()
            .map(|file| (file.number, file.bytes))
            .collect();
        self.seen = seen;
        for (file, entry) in files.iter().zip(&inventory.files) {
            file.let_go(entry.bytes, SMALL);
        }
        self.clean(before.into_keys()).await;
        Ok(())
    }

    async fn write(
        &self,
        inventory: &Inventory,
        files: &[memory::FileRef],
        begun: &mut Vec<u64>,
    ) -> Result<(), Trouble> {
        for (file, entry) in files.iter().zip(&inventory.files) {
            let stored = self.stored.get(&entry.number).copied();
            let from = stored.unwrap_or(0);
            if entry.bytes == from {
                continue;
            }
            let Some(bytes) = file.from(from) else {
                return Err(Trouble::Other(format!("{} is not in memory", entry.path)));
            };
            if stored.is_none() {
                begun.push(entry.number);
            }
            self.blobs.write(&blob(entry.number), from, &bytes).await?;
        }
        let index = Index {
            count: self.count + 1,
            inventory: inventory.clone(),
        };
        self.blobs
            .write(&slot(index.count), 0, &index.bytes())
            .await
    }

    /// Remove those of these contents that nothing names. What cannot be removed is, at the next start.
    async fn clean(&self, numbers: impl Iterator<Item = u64>) {
        for number in numbers.filter(|number| !self.stored.contains_key(number)) {
            let _ = self.blobs.remove(&blob(number)).await;
        }
    }
}

/// How the tree gets contents back.
fn fetch<B: Blobs + 'static>(blobs: &Rc<B>) -> memory::Fetch {
    let blobs = Rc::clone(blobs);
    Rc::new(move |number, bytes| {
        let blobs = Rc::clone(&blobs);
        Box::pin(async move {
            let read = blobs.read(&blob(number), 0, bytes).await;
            let content = read.map_err(|trouble| io::Error::other(trouble.to_string()))?;
            if content.len() as u64 != bytes {
                return Err(io::Error::other("the browser has lost a part of it"));
            }
            Ok(content)
        })
    })
}

#[cfg(test)]
mod tests;
