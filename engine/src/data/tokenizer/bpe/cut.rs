//! Cutting bytes into parts that are learnt from and encoded on their own.

/// The text that is encoded at a time; the work on it takes some hundred times its size.
const PIECE: usize = 1 << 20;

/// Where nothing else is found, the text is cut after so many bytes.
const LONGEST_PIECE: usize = 1 << 21;

/// Whether a text, as far as it is one, begins with a blank: what `\s` is to those who cut it into words.
fn begins_blank(bytes: &[u8]) -> bool {
    let first = bytes[..bytes.len().min(4)].utf8_chunks().next();
    first
        .and_then(|chunk| chunk.valid().chars().next())
        .is_some_and(char::is_whitespace)
}

/// Whether it ends with one.
fn ends_blank(bytes: &[u8]) -> bool {
    let last = bytes[bytes.len().saturating_sub(4)..].utf8_chunks().last();
    last.filter(|chunk| chunk.invalid().is_empty())
        .and_then(|chunk| chunk.valid().chars().next_back())
        .is_some_and(char::is_whitespace)
}

/// Parts of a text. They end after a line break between two characters that are no blanks; where there is none from
/// [`PIECE`] to [`LONGEST_PIECE`], anywhere between two characters.
pub(super) fn pieces(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let ends = |&end: &usize| {
            bytes[end - 1] == b'\n'
                && !ends_blank(&bytes[..end - 1])
                && !begins_blank(&bytes[end..])
        };
        let limit = bytes.len().min(LONGEST_PIECE);
        // A character may begin in the middle of any bytes; those that end a piece are no continuation of one.
        let hard = |&end: &usize| end == bytes.len() || bytes[end] & 0xc0 != 0x80;
        let end = (PIECE..limit)
            .find(ends)
            .or_else(|| (limit.saturating_sub(3)..=limit).rev().find(hard))
            .unwrap_or(limit);
        let (piece, rest) = bytes.split_at(end.max(1));
        bytes = rest;
        Some(piece)
    })
}

/// What can be cut into words, and what cannot.
pub(super) enum Run<'a> {
    Text(&'a str),
    /// No UTF-8.
    Bytes(&'a [u8]),
}

/// The texts of a piece, and the bytes between them.
pub(super) fn runs(piece: &[u8]) -> Vec<Run<'_>> {
    let mut runs = Vec::new();
    let (mut position, mut start) = (0, 0);
    for chunk in piece.utf8_chunks() {
        if !chunk.valid().is_empty() {
            if start < position {
                runs.push(Run::Bytes(&piece[start..position]));
            }
            runs.push(Run::Text(chunk.valid()));
            start = position + chunk.valid().len();
        }
        position += chunk.valid().len() + chunk.invalid().len();
    }
    if start < position {
        runs.push(Run::Bytes(&piece[start..position]));
    }
    runs
}
