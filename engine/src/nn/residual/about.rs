//! What a person should know about a mechanism before choosing it: shown by `braid list` and by the window.

/// Text about a mechanism. Plain text, no markup; lines of at most 76 characters in `equations`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// What it does, one line without a full stop.
    pub summary: &'static str,
    /// Title and place of the paper; empty where there is none.
    pub paper: &'static str,
    /// The definition, in the letters of the checkpoint format.
    pub equations: &'static str,
    /// Where the paper is silent or unclear: what we chose, a sentence each.
    pub choices: &'static [&'static str],
}
