//! Cutting bytes into parts that are learnt from and encoded on their own.

/// The text that is encoded at a time; the work on it takes some hundred times its size.
const PIECE: usize = 1 << 20;

/// Where nothing else is found, the text is cut after so many bytes.
const LONGEST_PIECE: usize = 1 << 21;

/// Parts of a text. They end after a line break between two characters that are no blanks.
pub(super) fn pieces(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let ends = |&end: &usize| {
            let blank = |position: usize| bytes[position].is_ascii_whitespace();
            bytes[end - 1] == b'\n' && !blank(end - 2) && !blank(end)
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
