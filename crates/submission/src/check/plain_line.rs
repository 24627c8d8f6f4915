//! A record in the very form in which LoadGen writes it, in one pass over its bytes: nearly every line of every log.
//!
//! It takes no other form and judges none: what it does not take goes to [`super::log_line`].

use memchr::memchr;

use super::log_line::Scalar;

/// A record up to its time; its value is as it stands in the line, and is JSON. The rest is taken by itself, because it is
/// the same wherever one place in LoadGen writes, and can be compared instead. All of it is ASCII, but for a tail that is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlainLine<'a> {
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    /// Milliseconds since the log was begun, a number of JSON.
    pub(super) time: &'a [u8],
    /// What follows the time.
    pub(super) tail: &'a [u8],
}

impl<'a> PlainLine<'a> {
    /// Whether the value is a list or a map.
    pub(super) fn is_bulk(&self) -> bool {
        matches!(self.value.first(), Some(b'[' | b'{'))
    }

    /// When it was written, in milliseconds since the log was begun.
    pub(super) fn time_ms(&self) -> Option<f64> {
        std::str::from_utf8(self.time).ok()?.parse().ok()
    }

    /// The value.
    pub(super) fn scalar(&self) -> Scalar<'a> {
        match self.value {
            b"true" => Scalar::Bool(true),
            b"false" => Scalar::Bool(false),
            [b'[' | b'{', ..] => Scalar::Bulk,
            value => serde_json::from_slice(value).unwrap_or(Scalar::Bulk),
        }
    }
}

/// Takes the record of a line without its marker, but for its tail. A key that is the `expected` one is not looked at again.
pub(super) fn take<'a>(json: &'a [u8], expected: &[u8]) -> Option<PlainLine<'a>> {
    let mut end = json.len();
    while end > 0 && matches!(json[end - 1], b'\n' | b'\r') {
        end -= 1;
    }
    let mut rest = Rest(&json[..end]);
    rest.literal(b"{\"key\": \"")?;
    let key = rest.known_text(expected).or_else(|| rest.text())?;
    rest.literal(b", \"value\": ")?;
    let value = rest.value()?;
    rest.literal(b", \"time_ms\": ")?;
    let from_time = rest.0;
    rest.number()?;
    Some(PlainLine {
        key,
        value,
        time: from_time.get(..from_time.len() - rest.0.len())?,
        tail: rest.0,
    })
}

/// Takes the tail of a record: whether it is of an error.
pub(super) fn take_tail(tail: &[u8]) -> Option<bool> {
    let mut rest = Rest(tail);
    rest.literal(b", \"namespace\": \"")?;
    rest.text()?;
    rest.literal(b", \"event_type\": \"")?;
    rest.text()?;
    rest.literal(b", \"metadata\": {\"is_error\": ")?;
    let is_error = rest.flag()?;
    rest.literal(b", \"is_warning\": ")?;
    rest.flag()?;
    rest.literal(b", \"file\": \"")?;
    rest.text()?;
    rest.literal(b", \"line_no\": ")?;
    rest.number()?;
    rest.literal(b", \"pid\": ")?;
    rest.number()?;
    rest.literal(b", \"tid\": ")?;
    rest.number()?;
    (rest.0 == b"}}").then_some(is_error)
}

/// What is left of the line.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    #[inline]
    fn literal(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    /// The text that is expected, with its closing quote.
    #[inline]
    fn known_text(&mut self, expected: &[u8]) -> Option<&'a [u8]> {
        let (text, rest) = self.0.split_at_checked(expected.len())?;
        let rest = rest.strip_prefix(b"\"")?;
        (!text.is_empty() && text == expected).then(|| self.0 = rest)?;
        Some(text)
    }

    /// The ASCII text up to its closing quote, where nothing in it is escaped or needs to be.
    #[inline]
    fn text(&mut self) -> Option<&'a [u8]> {
        let end = memchr(b'"', self.0)?;
        let (text, rest) = self.0.split_at_checked(end)?;
        // No early end, so that whole words are compared at once.
        let odd = |odd, &byte: &u8| odd | (byte < b' ') | (byte == b'\\') | (byte > 0x7e);
        if text.iter().fold(false, odd) {
            return None;
        }
        self.0 = rest.get(1..)?;
        Some(text)
    }

    #[inline]
    fn flag(&mut self) -> Option<bool> {
        match self.literal(b"false") {
            Some(()) => Some(false),
            None => self.literal(b"true").map(|()| true),
        }
    }

    /// A number by JSON's grammar. What follows it is not looked at.
    #[inline]
    fn number(&mut self) -> Option<()> {
        let rest = self.0.strip_prefix(b"-").unwrap_or(self.0);
        let (whole, mut rest) = digits(rest)?;
        if whole.len() > 1 && whole.first() == Some(&b'0') {
            return None;
        }
        if let [b'.', fraction @ ..] = rest {
            (_, rest) = digits(fraction)?;
        }
        if let [b'e' | b'E', b'-' | b'+', exponent @ ..] | [b'e' | b'E', exponent @ ..] = rest {
            (_, rest) = digits(exponent)?;
        }
        self.0 = rest;
        Some(())
    }

    /// `[1,2,3]`, as sample indices are written.
    fn list(&mut self) -> Option<()> {
        if let Some(end) = end_of_counts(self.0) {
            self.0 = self.0.get(end..)?;
            return Some(());
        }
        if self.literal(b"]").is_some() {
            return Some(());
        }
        loop {
            self.number()?;
            if self.literal(b"]").is_some() {
                return Some(());
            }
            self.literal(b",")?;
        }
    }

    /// `{"file":"hash","file":"hash"}`, as LoadGen writes its checksums.
    fn map(&mut self) -> Option<()> {
        if self.literal(b"}").is_some() {
            return Some(());
        }
        loop {
            self.literal(b"\"")?;
            self.text()?;
            self.literal(b":\"")?;
            self.text()?;
            if self.literal(b"}").is_some() {
                return Some(());
            }
            self.literal(b",")?;
        }
    }

    #[inline]
    fn value(&mut self) -> Option<&'a [u8]> {
        let whole = self.0;
        match whole.first()? {
            b'"' => {
                self.literal(b"\"")?;
                self.text()?;
            }
            b'[' => {
                self.literal(b"[")?;
                self.list()?;
            }
            b'{' => {
                self.literal(b"{")?;
                self.map()?;
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
    // Which of the counts' digits is the first is told by its neighbours alone, so that whole words are looked at at once. Where
    // all bytes are digits and commas, what is no comma is a digit.
    let is_digit = |byte: u8| byte.wrapping_sub(b'0') < 10;
    let is_odd = |byte: u8| !(is_digit(byte) | (byte == b','));
    let odd_three = |odd, ((&one, &two), &three): ((&u8, &u8), &u8)| {
        let no_count = (two == b',') | ((two == b'0') & (three != b','));
        odd | is_odd(one) | ((one == b',') & no_count)
    };
    let [first, .., before_last, last] = *list else {
        // One or two counts, or none.
        return None;
    };
    let (next, after) = (list.get(1..)?, list.get(2..)?);
    let odd = list.iter().zip(next).zip(after).fold(false, odd_three)
        // The first count and the last ones have fewer neighbours.
        | !is_digit(first)
        | !is_digit(last)
        | is_odd(before_last)
        | ((first == b'0') & (next.first() != Some(&b',')));
    (!odd).then_some(end + 1)
}

/// The digits that the text begins with, at least one, and what follows them.
#[inline]
fn digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then(|| text.split_at(count))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{PlainLine, take_tail};
    use crate::check::log_line::Record;

    /// A whole record, and whether it is of an error.
    fn take(json: &str) -> Option<(PlainLine<'_>, bool)> {
        let plain = super::take(json.as_bytes(), b"other")?;
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
            "{}",
            "{\"a\":\"b\",\"c\":\"\"}",
        ] {
            let line = line(value);
            let (taken, is_error) = take(&line).unwrap();
            assert_eq!(
                (taken.key, taken.value, is_error),
                (&b"k"[..], value.as_bytes(), false)
            );
            assert_eq!(super::take(line.as_bytes(), b"k").unwrap(), taken);
        }
    }

    #[test]
    fn what_is_no_json_is_not() {
        for value in [
            "",
            "01",
            "[01]",
            "[1,,2]",
            "[00]",
            "1.",
            ".5",
            "+1",
            "[1,]",
            "[,]",
            "\"a\\\"",
            "\"a\tb\"",
            "nan",
            "tru",
            "1e",
            "[1 ,2]",
            "--1",
            "{\"a\":1}",
            "{\"a\"}",
            "{\"a\":\"b\",}",
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
                prop_assert_eq!(taken.key, record.key.as_bytes());
                prop_assert_eq!(is_error, record.metadata.is_error);
            }
        }
    }
}
