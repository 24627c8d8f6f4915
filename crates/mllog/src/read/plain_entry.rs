//! Recognises the one form in which LoadGen writes an entry of the accuracy log.
//!
//! This only saves time. The general parser reads all other entries and reports their errors.

/// An entry in LoadGen's form, up to its `}`.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlainEntry<'a> {
    pub(super) seq_id: u64,
    pub(super) qsl_idx: u64,
    /// The digits of the response; their number is even.
    pub(super) digits: &'a [u8],
    /// The length of the entry in bytes.
    pub(super) length: usize,
}

impl<'a> PlainEntry<'a> {
    /// The largest number of digits. The general parser reads longer responses piece by piece.
    const MAX_DIGITS: usize = 16 << 10;
    /// The greatest length of an entry that is recognised here, in bytes.
    pub(super) const MAX: usize = Self::MAX_DIGITS + 128;

    /// Returns the entry at the beginning of `bytes`.
    #[inline]
    pub(super) fn at_start(bytes: &'a [u8]) -> Option<Self> {
        let (seq_id, rest) = number(bytes.strip_prefix(b"{ \"seq_id\" : ")?)?;
        let (qsl_idx, rest) = number(rest.strip_prefix(b", \"qsl_idx\" : ")?)?;
        let rest = rest.strip_prefix(b", \"data\" : \"")?;
        let near = rest.get(..Self::MAX_DIGITS).unwrap_or(rest);
        let (digits, rest) = rest.split_at_checked(hex_run(near))?;
        let rest = rest.strip_prefix(b"\" }")?;
        digits.len().is_multiple_of(2).then_some(Self {
            seq_id,
            qsl_idx,
            digits,
            length: bytes.len() - rest.len(),
        })
    }
}

/// Returns a number of at most 19 digits, which fits 64 bits, and the rest.
#[inline]
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    let mut length = 0;
    while let Some(digit) = bytes
        .get(length)
        .map(|byte| byte.wrapping_sub(b'0'))
        .filter(|digit| *digit < 10)
    {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        length += 1;
    }
    let plain = (1..=19).contains(&length) && (length == 1 || bytes.first() != Some(&b'0'));
    plain.then_some((value, bytes.get(length..)?))
}

/// Returns the number of leading hexadecimal digits in `bytes`.
#[inline]
pub(super) fn hex_run(bytes: &[u8]) -> usize {
    /// The block size that the compiler vectorizes well.
    const BLOCK: usize = 32;
    let whole = bytes
        .chunks_exact(BLOCK)
        .take_while(|block| block.iter().fold(true, |all, byte| all & is_hex(*byte)))
        .count()
        * BLOCK;
    let rest = bytes.get(whole..).unwrap_or_default();
    whole + rest.iter().take_while(|byte| IS_HEX[usize::from(**byte)]).count()
}

#[inline]
const fn is_hex(byte: u8) -> bool {
    (byte.wrapping_sub(b'0') < 10) | ((byte | 0x20).wrapping_sub(b'a') < 6)
}

/// The result of [`is_hex`] for every byte. A table avoids branches, which are mispredicted half of the time on random digits.
const IS_HEX: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    loop {
        table[byte as usize] = is_hex(byte);
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    table
};
