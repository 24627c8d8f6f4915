//! A record in the very form in which LoadGen writes it, in one pass over its bytes: nearly every line of every log.
//!
//! It takes no other form and judges none: what it does not take goes to [`super::log_line`].

use memchr::memchr;

/// A record up to its time; its value is as it stands in the line, and is JSON. The rest is taken by itself, because it is
/// the same wherever one place in LoadGen writes, and can be compared instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlainLine<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a str,
    /// What follows the time.
    pub(super) tail: &'a str,
}

/// Takes the record of a line without its marker, but for its tail.
pub(super) fn take(json: &str) -> Option<PlainLine<'_>> {
    let mut rest = Rest(json.trim_end_matches(['\n', '\r']));
    rest.literal("{\"key\": \"")?;
    let key = rest.text()?;
    rest.literal(", \"value\": ")?;
    let value = rest.value()?;
    rest.literal(", \"time_ms\": ")?;
    rest.number()?;
    Some(PlainLine {
        key,
        value,
        tail: rest.0,
    })
}

/// Takes the tail of a record: whether it is of an error.
pub(super) fn take_tail(tail: &str) -> Option<bool> {
    let mut rest = Rest(tail);
    rest.literal(", \"namespace\": \"")?;
    rest.text()?;
    rest.literal(", \"event_type\": \"")?;
    rest.text()?;
    rest.literal(", \"metadata\": {\"is_error\": ")?;
    let is_error = rest.flag()?;
    rest.literal(", \"is_warning\": ")?;
    rest.flag()?;
    rest.literal(", \"file\": \"")?;
    rest.text()?;
    rest.literal(", \"line_no\": ")?;
    rest.number()?;
    rest.literal(", \"pid\": ")?;
    rest.number()?;
    rest.literal(", \"tid\": ")?;
    rest.number()?;
    (rest.0 == "}}").then_some(is_error)
}

/// What is left of the line.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn literal(&mut self, expected: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    /// The text up to its closing quote, where nothing in it is escaped or needs to be.
    fn text(&mut self) -> Option<&'a str> {
        let (text, rest) = self.0.split_once('"')?;
        // No early end, so that whole words are compared at once.
        let odd = |odd, byte| odd | (byte < b' ') | (byte == b'\\');
        if text.bytes().fold(false, odd) {
            return None;
        }
        self.0 = rest;
        Some(text)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.literal("false") {
            Some(()) => Some(false),
            None => self.literal("true").map(|()| true),
        }
    }

    fn number(&mut self) -> Option<()> {
        // Nearly all are counts: they are told from their first digits.
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (count, rest) = self.0.split_at(digits);
        let more = rest.starts_with(['.', 'e', 'E', '-', '+']);
        if !more && (digits == 1 || digits > 1 && !count.starts_with('0')) {
            self.0 = rest;
            return Some(());
        }
        let part_of_number = |byte: u8| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E');
        let end = self.0.bytes().position(|byte| !part_of_number(byte))?;
        let (number, rest) = self.0.split_at(end);
        self.0 = rest;
        is_number(number).then_some(())
    }

    /// `[1,2,3]`, as sample indices are written.
    fn list(&mut self) -> Option<()> {
        if let Some(end) = end_of_counts(self.0.as_bytes()) {
            self.0 = self.0.get(end..)?;
            return Some(());
        }
        if self.literal("]").is_some() {
            return Some(());
        }
        loop {
            self.number()?;
            if self.literal("]").is_some() {
                return Some(());
            }
            self.literal(",")?;
        }
    }

    fn value(&mut self) -> Option<&'a str> {
        let whole = self.0;
        match whole.bytes().next()? {
            b'"' => {
                self.literal("\"")?;
                self.text()?;
            }
            b'[' => {
                self.literal("[")?;
                self.list()?;
            }
            b't' | b'f' => {
                self.flag()?;
            }
            _ => self.number()?,
        }
        whole.get(..whole.len() - self.0.len())
    }
}

/// Where a list of counts ends, behind its bracket, sample indices are much of a log. `None` for any other list.
fn end_of_counts(bytes: &[u8]) -> Option<usize> {
    let end = memchr(b']', bytes)?;
    let list = bytes.get(..end)?;
    // Which of the counts' digits is the first is told by its neighbours alone, so that whole words are looked at at once.
    let is_digit = |byte: u8| byte.wrapping_sub(b'0') < 10;
    let odd_byte = |odd, &byte: &u8| odd | !(is_digit(byte) | (byte == b','));
    let empty = |odd, (&one, &two): (&u8, &u8)| odd | ((one == b',') & (two == b','));
    let zero = |odd, ((&one, &two), &three): ((&u8, &u8), &u8)| {
        odd | ((one == b',') & (two == b'0') & is_digit(three))
    };
    let (next, after) = (list.get(1..)?, list.get(2..).unwrap_or_default());
    let odd = list.iter().fold(false, odd_byte)
        | list.iter().zip(next).fold(false, empty)
        | list.iter().zip(next).zip(after).fold(false, zero)
        // The first count and the last one have one neighbour less.
        | !list.first().is_some_and(|&byte| is_digit(byte))
        | !list.last().is_some_and(|&byte| is_digit(byte))
        | (list.first() == Some(&b'0') && next.first().is_some_and(|&byte| is_digit(byte)));
    (!odd).then_some(end + 1)
}

/// Whether the text is a number by JSON's grammar.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        None => (text, None),
        Some(at) => (&text[..at], Some(&text[at + 1..])),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        None => (mantissa, None),
        Some((whole, fraction)) => (whole, Some(fraction)),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{PlainLine, take_tail};
    use crate::check::log_line::Record;

    /// A whole record, and whether it is of an error.
    fn take(json: &str) -> Option<(PlainLine<'_>, bool)> {
        let plain = super::take(json)?;
        let is_error = take_tail(plain.tail)?;
        Some((plain, is_error))
    }

    fn line(value: &str) -> String {
        format!(
            "{{\"key\": \"k\", \"value\": {value}, \"time_ms\": 0.005632, \"namespace\": \"mlperf::logging\", \
             \"event_type\": \"POINT_IN_TIME\", \"metadata\": {{\"is_error\": false, \"is_warning\": true, \
             \"file\": \"a/b.cc\", \"line_no\": 53, \"pid\": 1, \"tid\": 2}}}}\n"
        )
    }

    #[test]
    fn what_loadgen_writes_is_taken() {
        for value in [
            "\"VALID\"",
            "12",
            "-1.5e-07",
            "true",
            "[]",
            "[1,22,3]",
            "[0,10]",
            "[1.5,-2]",
            "0",
            "0.5",
        ] {
            let line = line(value);
            let (taken, is_error) = take(&line).unwrap();
            assert_eq!((taken.key, taken.value, is_error), ("k", value, false));
        }
    }

    #[test]
    fn what_is_no_json_is_not() {
        for value in [
            "", "01", "[01]", "[1,,2]", "[00]", "1.", ".5", "+1", "[1,]", "[,]", "\"a\\\"", "\"a\tb\"",
            "nan", "tru", "1e", "[1 ,2]", "--1",
        ] {
            assert_eq!(take(&line(value)), None, "{value}");
        }
        let line = line("1");
        for cut in 0..line.len() - 1 {
            assert_eq!(take(&line[..cut]), None, "{cut}");
        }
    }

    proptest! {
        /// Whatever is taken, the strict parser takes too, with the same key and error mark.
        #[test]
        fn it_takes_nothing_but_records(at in any::<prop::sample::Index>(), byte in 0_u8..128, value in "[0-9a-z\",.\\[\\]e+-]{0,8}") {
            let mut bytes = line(&value).into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let text = String::from_utf8(bytes).unwrap();
            if let Some((taken, is_error)) = take(&text) {
                let record: Record<'_> = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(taken.key, record.key.as_ref());
                prop_assert_eq!(is_error, record.metadata.is_error);
            }
        }
    }
}
