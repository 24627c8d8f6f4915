//! The words of numbers: what each means.

/// What a word means in a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberWord {
    Zero,
    /// 1 to 19.
    One(u32),
    /// 0 to 19 as an ordinal or in the plural, with its ending.
    OneWithEnding(u32, &'static str),
    /// 20 to 90.
    Ten(u32),
    TenWithEnding(u32, &'static str),
    /// A power of ten, by its exponent.
    Multiplier(u32),
    MultiplierWithEnding(u32, &'static str),
    /// A sign before a number.
    Sign(char),
    /// A currency after a number.
    Currency(char),
    Per,
    Percent,
    And,
    /// The next digit this many times.
    Repeat(usize),
    Point,
}

const ONES: [&str; 19] = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 8] = [
    "twent", "thirt", "fort", "fift", "sixt", "sevent", "eight", "ninet",
];
const MULTIPLIERS: [(&str, u32); 12] = [
    ("hundred", 2),
    ("thousand", 3),
    ("million", 6),
    ("billion", 9),
    ("trillion", 12),
    ("quadrillion", 15),
    ("quintillion", 18),
    ("sextillion", 21),
    ("septillion", 24),
    ("octillion", 27),
    ("nonillion", 30),
    ("decillion", 33),
];

impl NumberWord {
    /// Returns the meaning of a word; `None` when it has none in numbers.
    pub(super) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "o" | "oh" | "zero" => Self::Zero,
            "minus" | "negative" => Self::Sign('-'),
            "plus" | "positive" => Self::Sign('+'),
            "pound" | "pounds" => Self::Currency('£'),
            "euro" | "euros" => Self::Currency('€'),
            "dollar" | "dollars" => Self::Currency('$'),
            "cent" | "cents" => Self::Currency('¢'),
            "per" => Self::Per,
            "percent" => Self::Percent,
            "and" => Self::And,
            "double" => Self::Repeat(2),
            "triple" => Self::Repeat(3),
            "point" => Self::Point,
            _ => return one(word).or_else(|| ten(word)).or_else(|| multiplier(word)),
        })
    }

    /// Returns whether a word can follow the decimal point.
    pub(super) const fn is_decimal(self) -> bool {
        matches!(self, Self::Zero | Self::One(_) | Self::Ten(_))
    }
}

fn one(word: &str) -> Option<NumberWord> {
    let irregular = match word {
        "zeroth" => Some((0, "th")),
        "first" => Some((1, "st")),
        "second" => Some((2, "nd")),
        "third" => Some((3, "rd")),
        "fifth" => Some((5, "th")),
        "twelfth" => Some((12, "th")),
        "sixes" => Some((6, "s")),
        _ => None,
    };
    if let Some((value, ending)) = irregular {
        return Some(NumberWord::OneWithEnding(value, ending));
    }
    (1..)
        .zip(ONES)
        .find_map(|(value, name)| match word.strip_prefix(name)? {
            "" => Some(NumberWord::One(value)),
            "s" if value != 6 => Some(NumberWord::OneWithEnding(value, "s")),
            // The normaliser knows `nineth`, not `ninth`.
            "th" if value > 3 && !matches!(value, 5 | 8 | 12) => Some(NumberWord::OneWithEnding(value, "th")),
            "h" if value == 8 => Some(NumberWord::OneWithEnding(value, "th")),
            _ => None,
        })
}

fn ten(word: &str) -> Option<NumberWord> {
    (2..)
        .zip(TENS)
        .find_map(|(tens, stem)| match word.strip_prefix(stem)? {
            "y" => Some(NumberWord::Ten(10 * tens)),
            "ies" => Some(NumberWord::TenWithEnding(10 * tens, "s")),
            "ieth" => Some(NumberWord::TenWithEnding(10 * tens, "th")),
            _ => None,
        })
}

fn multiplier(word: &str) -> Option<NumberWord> {
    MULTIPLIERS
        .iter()
        .find_map(|&(name, exponent)| match word.strip_prefix(name)? {
            "" => Some(NumberWord::Multiplier(exponent)),
            "s" => Some(NumberWord::MultiplierWithEnding(exponent, "s")),
            "th" => Some(NumberWord::MultiplierWithEnding(exponent, "th")),
            _ => None,
        })
}
