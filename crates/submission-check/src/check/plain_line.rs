//! Parses a record in LoadGen's exact form in one pass over its bytes. Nearly every line of a log has this form.
//!
//! It accepts no other form; [`super::log_line`] parses the other lines.

use memchr::memchr;

use super::log_line::Scalar;

/// A record up to its time. The value is the JSON text of the line.
///
/// The tail is parsed separately. It is the same for all records from one place in LoadGen, so comparing it suffices. All parts
/// except an unparsed tail are ASCII.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlainLine<'a> {
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    /// The time in milliseconds since the start of the log, as a JSON number.
    pub(super) time: &'a [u8],
    /// The text after the time.
    pub(super) tail: &'a [u8],
}

impl<'a> PlainLine<'a> {
    /// Returns whether the value is a list or a map.
    pub(super) fn is_bulk(&self) -> bool {
        matches!(self.value.first(), Some(b'[' | b'{'))
    }

    /// Returns the time in milliseconds since the start of the log.
    pub(super) fn time_ms(&self) -> Option<f64> {
        std::str::from_utf8(self.time).ok()?.parse().ok()
    }

    /// Parses the value.
    pub(super) fn scalar(&self) -> Scalar<'a> {
        match self.value {
            b"true" => Scalar::Bool(true),
            b"false" => Scalar::Bool(false),
            [b'[' | b'{', ..] => Scalar::Bulk,
            value => serde_json::from_slice(value).unwrap_or(Scalar::Bulk),
        }
    }
}

/// Parses a line without its marker, up to the tail. A key that equals `expected` is not validated again.
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

/// Parses the tail of a record, and returns whether the record is an error.
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

/// The rest of the line.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    #[inline]
    fn literal(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    /// Consumes the expected text and its closing quote.
    #[inline]
    fn known_text(&mut self, expected: &[u8]) -> Option<&'a [u8]> {
        let (text, rest) = self.0.split_at_checked(expected.len())?;
        let rest = rest.strip_prefix(b"\"")?;
        (!text.is_empty() && text == expected).then(|| self.0 = rest)?;
        Some(text)
    }

    /// Consumes ASCII text up to its closing quote, if nothing in it is or needs to be escaped.
    #[inline]
    fn text(&mut self) -> Option<&'a [u8]> {
        let end = memchr(b'"', self.0)?;
        let (text, rest) = self.0.split_at_checked(end)?;
        // Without an early exit, the loop can compare whole machine words.
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

    /// Consumes a number by JSON's grammar. Does not look at the following text.
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

    /// Consumes a list of numbers, for example `[1,2,3]`, the form of sample indices.
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

    /// Consumes a map of texts, for example `{"file":"hash","file":"hash"}`, the form of LoadGen's checksums.
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

/// Returns the index after the closing bracket of a list of counts, or `None` for other lists.
///
/// Lists of sample indices are a large part of a log.
fn end_of_counts(bytes: &[u8]) -> Option<usize> {
    let end = memchr(b']', bytes)?;
    let list = bytes.get(..end)?;
    // The neighbours alone tell whether a digit is the first of its count, so the loop can compare whole machine words. If all
    // bytes are digits or commas, a byte that is not a comma is a digit.
    let is_digit = |byte: u8| byte.wrapping_sub(b'0') < 10;
    let is_odd = |byte: u8| !(is_digit(byte) | (byte == b','));
    let odd_three = |odd, ((&one, &two), &three): ((&u8, &u8), &u8)| {
        let no_count = (two == b',') | ((two == b'0') & (three != b','));
        odd | is_odd(one) | ((one == b',') & no_count)
    };
    let [first, .., before_last, last] = *list else {
        // Lists of fewer than three bytes use the general parser.
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

/// Returns the leading digits of the text, at least one, and the rest.
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

    /// Parses a complete record, and returns whether it is an error.
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
    fn lines_written_by_loadgen_are_accepted() {
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
    fn non_json_lines_are_not_plain_records() {
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
        /// The strict parser accepts every accepted line, with the same key and error flag.
        #[test]
        fn only_json_records_are_accepted_as_plain_lines(at in any::<prop::sample::Index>(), byte in 0_u8..128, value in "[0-9a-z\",.\\[\\]e+-]{0,8}") {
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
