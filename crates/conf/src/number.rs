//! Numbers in conf files: what C's `strtoull` (base 0) and `strtod` make of a word, which is what LoadGen uses.
//!
//! Locale and C's floating hexadecimals (`0x1p3`) are deliberately left out: the latter are refused.

/// A conf value. LoadGen keeps the word and reads it as integer or as decimal, whichever the key wants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    integer: u64,
    decimal: f64,
    integer_reading: IntegerReading,
}

/// How the integer that LoadGen reads relates to the number that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerReading {
    /// They are the same.
    Exact,
    /// The word goes on behind the integer: `0.5` is read as 0, `1e3` as 1, `08` as 0.
    Truncated,
    /// The number is negative. C wraps it: -1 becomes 2^64 - 1.
    Negative,
    /// The number is above 2^64 - 1, which C reads as 2^64 - 1.
    TooLarge,
    /// The word is `inf` or `nan`, which C reads as 0.
    NotFinite,
}

impl Number {
    /// Reads a word; `None` if it is neither an integer nor a decimal number from end to end.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let Prefix {
            integer,
            overflows,
            used,
        } = unsigned_prefix(word);
        let whole = used == word.len() && used > 0;
        let decimal = decimal(word).or_else(|| whole.then(|| radix_decimal(word)))?;
        let integer_reading = if overflows {
            IntegerReading::TooLarge
        } else if !decimal.is_finite() {
            IntegerReading::NotFinite
        } else if decimal < 0.0 {
            IntegerReading::Negative
        } else if whole {
            IntegerReading::Exact
        } else {
            IntegerReading::Truncated
        };
        Some(Self {
            integer,
            decimal,
            integer_reading,
        })
    }

    /// As `strtoull` reads it: `0x` is hexadecimal, a leading 0 octal, a sign wraps, too large is `u64::MAX`, and
    /// reading ends at the first character that does not belong (so `1.5` is 1 and `0.5` is 0).
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.integer
    }

    /// As `strtod` reads it.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        self.decimal
    }

    /// How [`as_u64`](Self::as_u64) relates to what was written.
    #[must_use]
    pub const fn integer_reading(self) -> IntegerReading {
        self.integer_reading
    }
}

fn split_sign(word: &str) -> (bool, &str) {
    match word.as_bytes().first() {
        Some(b'-') => (true, &word[1..]),
        Some(b'+') => (false, &word[1..]),
        _ => (false, word),
    }
}

/// What `strtoull(word, &end, 0)` reads.
struct Prefix {
    integer: u64,
    overflows: bool,
    /// How many bytes belong to the integer.
    used: usize,
}

fn unsigned_prefix(word: &str) -> Prefix {
    let (negative, digits) = split_sign(word);
    let (radix, body) = radix_of(digits);
    let length = body
        .bytes()
        .take_while(|&b| char::from(b).is_digit(radix))
        .count();
    if length == 0 {
        return Prefix {
            integer: 0,
            overflows: false,
            used: 0,
        };
    }
    let value = u64::from_str_radix(&body[..length], radix);
    Prefix {
        integer: match value {
            Ok(value) if negative => value.wrapping_neg(),
            Ok(value) => value,
            Err(_) => u64::MAX,
        },
        overflows: value.is_err(),
        used: word.len() - body.len() + length,
    }
}

fn radix_of(digits: &str) -> (u32, &str) {
    let lower_prefix = digits.get(..2).map(str::to_ascii_lowercase);
    match digits.as_bytes() {
        [b'0', _, third, ..] if lower_prefix.as_deref() == Some("0x") && third.is_ascii_hexdigit() => {
            (16, &digits[2..])
        }
        [b'0', ..] => (8, digits),
        _ => (10, digits),
    }
}

/// `strtod` of the whole word, for decimal notation, `inf` and `nan`.
fn decimal(word: &str) -> Option<f64> {
    word.parse().ok()
}

/// `strtod` of an integer that only `strtoull` takes whole: a hexadecimal.
fn radix_decimal(word: &str) -> f64 {
    let (negative, digits) = split_sign(word);
    let (radix, body) = radix_of(digits);
    let magnitude = body
        .chars()
        .filter_map(|c| c.to_digit(radix))
        .fold(0.0, |sum, digit| sum * f64::from(radix) + f64::from(digit));
    if negative { -magnitude } else { magnitude }
}
