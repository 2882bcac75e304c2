//! Which seeds a sweep has.

use std::str::FromStr;

use braid_engine::{Error, Result};
use toml::Value;

/// More than anyone waits for: a slip of the keyboard.
const MOST: usize = 1000;

/// Seeds, each once, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(Vec<u64>);

impl Seeds {
    /// In their order.
    #[must_use]
    pub fn list(&self) -> &[u64] {
        &self.0
    }

    fn new(seeds: Vec<u64>, shown: &str) -> Result<Self> {
        let refuse = |why: String| Err(Error::config("seeds", why));
        if seeds.is_empty() || seeds.len() > MOST {
            return refuse(format!(
                "is {shown}, which is {} seeds; there must be between 1 and {MOST}",
                seeds.len()
            ));
        }
        for (place, seed) in seeds.iter().enumerate() {
            if seeds[..place].contains(seed) {
                return refuse(format!(
                    "has {seed} twice; each seed is one run of a variant"
                ));
            }
            if i64::try_from(*seed).is_err() {
                return refuse(format!("has {seed}; a seed is at most {}", i64::MAX));
            }
        }
        Ok(Self(seeds))
    }

    /// The value of `seeds` in a sweep file: a number of seeds, or a list of them.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn from_toml(value: &Value) -> Result<Self> {
        let wrong = || {
            Error::config(
                "seeds",
                format!(
                    "is {value}; it must be a number of seeds, such as 3, or a list, such as [1, 2, 5]"
                ),
            )
        };
        let whole = |value: &Value| value.as_integer().and_then(|n| u64::try_from(n).ok());
        let seeds = match value {
            Value::Array(list) => list.iter().map(whole).collect::<Option<Vec<u64>>>(),
            _ => whole(value).map(first),
        };
        Self::new(seeds.ok_or_else(wrong)?, &value.to_string())
    }
}

/// `1..=count`; far too many are cut, and refused then.
fn first(count: u64) -> Vec<u64> {
    (1..=count.min(MOST as u64 + 1)).collect()
}

impl FromStr for Seeds {
    type Err = Error;

    /// `3` (1, 2 and 3), `1,2,5`, or `4..6` (4, 5 and 6).
    fn from_str(text: &str) -> Result<Self> {
        let wrong = |_| {
            Error::config(
                "seeds",
                format!(
                    "is `{text}`; write a number of seeds (3), a list (1,2,5) or a range (4..6)"
                ),
            )
        };
        let number = |text: &str| text.trim().parse::<u64>().map_err(wrong);
        let seeds = if let Some((from, to)) = text.split_once("..") {
            let (from, to) = (number(from)?, number(to)?);
            let end = to.min(from.saturating_add(MOST as u64));
            (from..=end).collect()
        } else if text.contains(',') {
            let parts = text.split(',').filter(|part| !part.trim().is_empty());
            parts.map(number).collect::<Result<Vec<u64>>>()?
        } else {
            first(number(text)?)
        };
        Self::new(seeds, text)
    }
}

impl Default for Seeds {
    /// Three: fewer say nothing about noise.
    fn default() -> Self {
        Self(vec![1, 2, 3])
    }
}
