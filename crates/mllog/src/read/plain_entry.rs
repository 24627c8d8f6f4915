//! The one form in which LoadGen writes an entry of the accuracy log, recognised at a glance.
//!
//! It is there for speed alone: whatever it does not recognise is read by the grammar, faults included.

/// An entry in LoadGen's form, up to its `}`.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlainEntry<'a> {
    pub(super) seq_id: u64,
    pub(super) qsl_idx: u64,
    /// The response's digits, an even number of them.
    pub(super) digits: &'a [u8],
    /// Bytes of the entry.
    pub(super) length: usize,
}

impl<'a> PlainEntry<'a> {
    /// More digits than this are left to the grammar, which takes them piece by piece.
    const MOST_DIGITS: usize = 16 << 10;
    /// No entry recognised here is longer.
    pub(super) const LONGEST: usize = Self::MOST_DIGITS + 128;

    /// The entry that `bytes` begin with.
    #[inline]
    pub(super) fn at_start(bytes: &'a [u8]) -> Option<Self> {
        let (seq_id, rest) = number(bytes.strip_prefix(b"{ \"seq_id\" : ")?)?;
        let (qsl_idx, rest) = number(rest.strip_prefix(b", \"qsl_idx\" : ")?)?;
        let rest = rest.strip_prefix(b", \"data\" : \"")?;
        let near = rest.get(..Self::MOST_DIGITS).unwrap_or(rest);
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

/// A number of at most 19 digits, which always fits, and what follows it.
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

/// How many hexadecimal digits stand at the beginning of `bytes`.
#[inline]
pub(super) fn hex_run(bytes: &[u8]) -> usize {
    /// As wide as the compiler's vector code likes it.
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

/// [`is_hex`] of every byte: looked up one by one, since a branch on random digits is guessed wrong every other time.
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
