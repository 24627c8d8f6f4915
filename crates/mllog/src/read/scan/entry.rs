//! The grammar of one entry of an accuracy log: keys in any order, any white space, unknown keys skipped.

use std::io::Read;

use super::{AccuracyScanner, Field, ScannedEntry, fault::EntryFault};
use crate::read::plain_entry::hex_run;

impl<R: Read> AccuracyScanner<R> {
    pub(super) fn object(
        &mut self,
        mut digits: impl FnMut(Field, &[u8]),
    ) -> Result<ScannedEntry, EntryFault> {
        self.expect(b'{', "an object of seq_id, qsl_idx and data")?;
        let offset = self.input.offset() - 1;
        let (mut seq_id, mut qsl_idx, mut bytes) = (None, None, None);
        let (mut token_bytes, mut token_count) = (None, None);
        loop {
            let key = self.key()?;
            match key.as_bytes() {
                b"seq_id" => once(&mut seq_id, self.unsigned()?, "seq_id")?,
                b"qsl_idx" => once(&mut qsl_idx, self.unsigned()?, "qsl_idx")?,
                b"data" => {
                    let length = self.hexadecimal(|piece| digits(Field::Data, piece))?;
                    once(&mut bytes, length, "data")?;
                }
                b"token_data" => {
                    let length = self.hexadecimal(|piece| digits(Field::TokenData, piece))?;
                    once(&mut token_bytes, length, "token_data")?;
                }
                b"token_count" => once(&mut token_count, self.signed()?, "token_count")?,
                _ => self.skip_value()?,
            }
            match self.past_space()? {
                Some(b',') => self.input.pass(1),
                Some(b'}') => {
                    self.input.pass(1);
                    break;
                }
                Some(_) => return Err(EntryFault::Wrong("expected `,` or `}`".to_owned())),
                None => return Err(EntryFault::Ends),
            }
        }
        let missing = |name: &str| EntryFault::Wrong(format!("missing field `{name}`"));
        Ok(ScannedEntry {
            seq_id: seq_id.ok_or_else(|| missing("seq_id"))?,
            qsl_idx: qsl_idx.ok_or_else(|| missing("qsl_idx"))?,
            bytes: bytes.ok_or_else(|| missing("data"))?,
            token_bytes,
            token_count,
            offset,
            length: self.input.offset() - offset,
        })
    }

    /// Consumes `"name" :` and returns the name.
    #[inline]
    fn key(&mut self) -> Result<Key, EntryFault> {
        self.expect(b'"', "a key")?;
        let mut key = Key::default();
        loop {
            match self.input.peek()? {
                Some(b'"') => break,
                Some(byte) if byte >= b' ' => key.push(byte),
                Some(_) => return Err(EntryFault::Wrong("a control character in a key".to_owned())),
                None => return Err(EntryFault::Ends),
            }
            self.input.pass(1);
        }
        self.input.pass(1);
        self.expect(b':', "`:`")?;
        Ok(key)
    }

    /// Reads an integer of JSON's form that fits 64 bits.
    #[inline]
    fn unsigned(&mut self) -> Result<u64, EntryFault> {
        let first = self.past_space()?.ok_or(EntryFault::Ends)?;
        if !first.is_ascii_digit() {
            return Err(EntryFault::Wrong("expected an integer".to_owned()));
        }
        let mut value = 0_u64;
        let mut digits = 0;
        loop {
            let next = self.input.peek()?;
            let Some(digit) = next.filter(u8::is_ascii_digit).map(|byte| u64::from(byte - b'0')) else {
                // A fraction or exponent is an error. In a valid entry `,`, `}` or a space follows.
                return match next {
                    Some(b'.' | b'e' | b'E') => Err(EntryFault::Wrong("expected an integer".to_owned())),
                    _ => Ok(value),
                };
            };
            digits += 1;
            if digits == 2 && first == b'0' {
                return Err(EntryFault::Wrong("a number with a leading zero".to_owned()));
            }
            value = value
                .checked_mul(10)
                .and_then(|tens| tens.checked_add(digit))
                .ok_or_else(|| EntryFault::Wrong("a number beyond 64 bits".to_owned()))?;
            self.input.pass(1);
        }
    }

    fn signed(&mut self) -> Result<i64, EntryFault> {
        let negative = self.past_space()? == Some(b'-');
        if negative {
            self.input.pass(1);
            if !self.input.peek()?.ok_or(EntryFault::Ends)?.is_ascii_digit() {
                return Err(EntryFault::Wrong("expected an integer".to_owned()));
            }
        }
        let size = i128::from(self.unsigned()?);
        i64::try_from(if negative { -size } else { size })
            .map_err(|_| EntryFault::Wrong("a number beyond 64 bits".to_owned()))
    }

    /// Reads a string of hexadecimal digits, and returns its length in bytes.
    #[inline]
    fn hexadecimal(&mut self, mut data: impl FnMut(&[u8])) -> Result<u64, EntryFault> {
        self.expect(b'"', "a string of hexadecimal digits")?;
        let mut digits = 0_u64;
        loop {
            let at_hand = self.input.at_hand();
            let run = hex_run(at_hand);
            if let Some(&stop) = at_hand.get(run) {
                if stop != b'"' {
                    self.input.pass(run);
                    let byte = (digits + run as u64) / 2;
                    return Err(EntryFault::Wrong(format!(
                        "byte {byte} of the data is not hexadecimal"
                    )));
                }
                digits += run as u64;
                if !digits.is_multiple_of(2) {
                    return Err(EntryFault::Wrong(format!(
                        "an odd number of hexadecimal digits ({digits})"
                    )));
                }
                data(at_hand.get(..run).unwrap_or_default());
                self.input.pass(run + 1);
                return Ok(digits / 2);
            }
            let whole = run & !1;
            data(at_hand.get(..whole).unwrap_or_default());
            digits += whole as u64;
            self.input.pass(whole);
            if !self.input.refill()? {
                self.input.pass(run - whole);
                return Err(EntryFault::Ends);
            }
        }
    }

    /// Skips the value of a key that LoadGen does not write, of any type.
    fn skip_value(&mut self) -> Result<(), EntryFault> {
        let mut depth = 0_u32;
        loop {
            match self.past_space()?.ok_or(EntryFault::Ends)? {
                b'"' => self.skip_string()?,
                b'[' | b'{' => {
                    self.input.pass(1);
                    depth += 1;
                }
                b']' | b'}' if depth > 0 => {
                    self.input.pass(1);
                    depth -= 1;
                }
                b',' | b':' if depth > 0 => self.input.pass(1),
                byte if byte.is_ascii_alphanumeric() || byte == b'-' => self.skip_word()?,
                _ => return Err(EntryFault::Wrong("expected a value".to_owned())),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn skip_string(&mut self) -> Result<(), EntryFault> {
        self.input.pass(1);
        loop {
            match self.input.peek()?.ok_or(EntryFault::Ends)? {
                b'"' => {
                    self.input.pass(1);
                    return Ok(());
                }
                b'\\' => {
                    self.input.pass(1);
                    self.input.peek()?.ok_or(EntryFault::Ends)?;
                    self.input.pass(1);
                }
                byte if byte < b' ' => {
                    return Err(EntryFault::Wrong("a control character in a string".to_owned()));
                }
                _ => self.input.pass(1),
            }
        }
    }

    /// Skips a number, `true`, `false` or `null` without validating it, because the value is not used.
    fn skip_word(&mut self) -> Result<(), EntryFault> {
        while self
            .input
            .peek()?
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'))
        {
            self.input.pass(1);
        }
        Ok(())
    }

    #[inline]
    fn expect(&mut self, expected: u8, what: &str) -> Result<(), EntryFault> {
        match self.past_space()? {
            Some(byte) if byte == expected => {
                self.input.pass(1);
                Ok(())
            }
            Some(_) => Err(EntryFault::Wrong(format!("expected {what}"))),
            None => Err(EntryFault::Ends),
        }
    }
}

/// The first bytes of a key, enough to distinguish LoadGen's keys.
#[derive(Default)]
struct Key {
    bytes: [u8; 16],
    length: usize,
}

impl Key {
    #[inline]
    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.length) {
            *slot = byte;
        }
        self.length += 1;
    }

    /// Returns the key; empty if it is longer than all of LoadGen's keys.
    #[inline]
    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

#[inline]
fn once<T>(slot: &mut Option<T>, value: T, name: &str) -> Result<(), EntryFault> {
    if slot.replace(value).is_some() {
        return Err(EntryFault::Wrong(format!("duplicate field `{name}`")));
    }
    Ok(())
}
