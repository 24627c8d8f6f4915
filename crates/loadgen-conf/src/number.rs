//! Numbers in conf files, as C's `strtoull` (base 0) and `strtod` parse them, because LoadGen uses these functions.
//!
//! Locale and C's hexadecimal floating-point numbers (`0x1p3`) are deliberately not supported; the latter are rejected.

/// A conf value. LoadGen keeps the word and reads it as an integer or as a decimal, depending on the key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    integer: u64,
    decimal: f64,
    integer_reading: IntegerReading,
}

/// The relation of the integer that LoadGen reads to the written number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerReading {
    /// Both are equal.
    Exact,
    /// The word continues after the integer: `0.5` is read as 0, `1e3` as 1, `08` as 0.
    Truncated,
    /// The number is negative. C wraps it: -1 becomes 2^64 - 1.
    Negative,
    /// The number is above 2^64 - 1, which C reads as 2^64 - 1.
    TooLarge,
    /// The word is `inf` or `nan`, which C reads as 0.
    NotFinite,
}

impl Number {
    /// Parses a word; `None` if it is neither an integer nor a decimal number from end to end.
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

    /// Returns the value that `strtoull` reads. `0x` is hexadecimal, a leading 0 is octal, a sign wraps, and a too large number is
    /// `u64::MAX`. Parsing ends at the first character that is not a digit (so `1.5` is 1 and `0.5` is 0).
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.integer
    }

    /// Returns the value that `strtod` reads.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        self.decimal
    }

    /// Returns the relation of [`as_u64`](Self::as_u64) to the written number.
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

/// The result of `strtoull(word, &end, 0)`.
struct Prefix {
    integer: u64,
    overflows: bool,
    /// Number of bytes of the integer.
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

/// Parses the complete word like `strtod`, for decimal notation, `inf` and `nan`.
fn decimal(word: &str) -> Option<f64> {
    word.parse().ok()
}

/// Computes the `strtod` value of an integer that only `strtoull` parses completely: a hexadecimal.
fn radix_decimal(word: &str) -> f64 {
    let (negative, digits) = split_sign(word);
    let (radix, body) = radix_of(digits);
    let magnitude = body
        .chars()
        .filter_map(|c| c.to_digit(radix))
        .fold(0.0, |sum, digit| sum * f64::from(radix) + f64::from(digit));
    if negative { -magnitude } else { magnitude }
}
