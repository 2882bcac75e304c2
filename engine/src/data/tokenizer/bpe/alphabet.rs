//! The characters that stand for bytes in a byte-level vocabulary.
//!
//! Printable characters of Latin-1 stand for themselves; the other bytes follow from U+0100 on. So every token can be
//! written as text, and blanks can be told from the ends of words. From GPT-2.

/// Whether the byte is its own character.
const fn printable(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff)
}

/// The character of every byte.
const CHARACTERS: [char; 256] = {
    let mut all = ['\0'; 256];
    let (mut byte, mut next) = (0_usize, 0x100_u32);
    while byte < 256 {
        all[byte] = if printable(byte as u8) {
            byte as u8 as char
        } else {
            next += 1;
            match char::from_u32(next - 1) {
                Some(character) => character,
                None => panic!("these are below U+0200"),
            }
        };
        byte += 1;
    }
    all
};

/// Bytes as characters.
pub(super) fn text(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|&byte| CHARACTERS[usize::from(byte)])
        .collect()
}

/// The bytes that a token's characters stand for; `None` if one of them stands for none.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    text.chars().map(byte).collect()
}

fn byte(character: char) -> Option<u8> {
    match u8::try_from(character) {
        Ok(byte) => printable(byte).then_some(byte),
        Err(_) => {
            let offset = (character as usize).checked_sub(0x100)?;
            let mut others = (0..=255_u8).filter(|&byte| !printable(byte));
            others.nth(offset)
        }
    }
}

/// The bytes, ordered as their characters are: the order of the first 256 tokens.
pub(super) fn in_order() -> Vec<u8> {
    let mut all: Vec<u8> = (0..=255).collect();
    all.sort_by_key(|&byte| CHARACTERS[usize::from(byte)]);
    all
}
