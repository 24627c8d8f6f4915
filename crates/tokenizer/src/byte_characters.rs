//! The characters that represent bytes in a byte-level vocabulary.

use std::collections::HashMap;

/// Returns the byte that each character of a vocabulary represents: printable Latin-1 characters for themselves, those from U+0100 for the
/// other bytes in order.
#[must_use]
pub fn byte_of_characters() -> HashMap<char, u8> {
    let mut next = 0x100_u32;
    let characters = (0..=u8::MAX).map(|byte| {
        let is_printable = matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
        let character = if is_printable {
            char::from(byte)
        } else {
            next += 1;
            char::from_u32(next - 1).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        (character, byte)
    });
    characters.collect()
}
