//! Numbers in words become figures, as the `EnglishNumberNormalizer` of `openai-whisper` writes them: `one hundred and five` is `105`, `nineteen
//! oh one` is `1901`, `two pounds` is `£2`. The rules are heuristics, which are followed where they are odd, too.

use num_bigint::BigUint;
use regex::{Captures, Regex};

use super::{number_words::NumberWord, pattern::pattern};

pub(super) struct NumberNormalizer {
    and_a_half: Regex,
    word_before_digit: Regex,
    digit_before_word: Regex,
    space_before_ending: Regex,
    currency_and_cents: Regex,
    only_cents: Regex,
    one: Regex,
}

impl NumberNormalizer {
    pub(super) fn new() -> Self {
        Self {
            and_a_half: pattern(r"\band\s+a\s+half\b"),
            word_before_digit: pattern(r"([a-z])([0-9])"),
            digit_before_word: pattern(r"([0-9])([a-z])"),
            space_before_ending: pattern(r"([0-9])\s+(st|nd|rd|th|s)\b"),
            currency_and_cents: pattern(r"([€£$])([0-9]+) (?:and )?¢([0-9]{1,2})\b"),
            only_cents: pattern(r"[€£$]0.([0-9]{1,2})\b"),
            one: pattern(r"\b1(s?)\b"),
        }
    }

    pub(super) fn normalize(&self, text: &str) -> String {
        let text = self.with_halves(text);
        let text = self.word_before_digit.replace_all(&text, "${1} ${2}");
        let text = self.digit_before_word.replace_all(&text, "${1} ${2}");
        let text = self.space_before_ending.replace_all(&text, "${1}${2}");
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = Conversion::default().convert(&words).join(" ");
        let text = self
            .currency_and_cents
            .replace_all(&text, |found: &Captures<'_>| {
                format!("{}{}.{:0>2}", &found[1], &found[2], &found[3])
            });
        let text = self.only_cents.replace_all(&text, |found: &Captures<'_>| {
            let cents = found[1].trim_start_matches('0');
            format!("¢{}", if cents.is_empty() { "0" } else { cents })
        });
        self.one.replace_all(&text, "one${1}").into_owned()
    }

    /// Replaces `and a half` after a number by `point five`.
    fn with_halves(&self, text: &str) -> String {
        let segments: Vec<&str> = self.and_a_half.split(text).collect();
        let mut parts = Vec::new();
        for (number, segment) in segments.iter().enumerate() {
            let Some(last) = segment.split_whitespace().last() else {
                continue;
            };
            parts.push(*segment);
            if number + 1 < segments.len() {
                let is_number = NumberWord::of(last)
                    .is_some_and(|word| word.is_decimal() || matches!(word, NumberWord::Multiplier(_)));
                parts.push(if is_number { "point five" } else { "and a half" });
            }
        }
        parts.join(" ")
    }
}

/// A number in the making.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Figures {
    /// A number that can be added to.
    Whole(BigUint),
    /// Figures that further ones are appended to.
    Text(String),
}

impl Figures {
    fn of(value: u32) -> Self {
        Self::Whole(value.into())
    }

    fn text(&self) -> String {
        match self {
            Self::Whole(value) => value.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    /// Returns the value times a power of ten if the product is an integer. Returns `None` for text that is not a number.
    fn shifted(&self, exponent: u32) -> Option<BigUint> {
        let text = self.text();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let fraction = fraction.trim_end_matches('0');
        let digits = format!("{whole}{fraction}");
        let missing = (exponent as usize).checked_sub(fraction.len())?;
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            && text.bytes().any(|byte| byte.is_ascii_digit())
            && text.bytes().filter(|&byte| byte == b'.').count() <= 1;
        // Zeros that were cut off are no digits.
        let digits = if digits.is_empty() { "0".to_owned() } else { digits };
        let value: BigUint = is_number.then(|| digits.parse().ok()).flatten()?;
        Some(value * BigUint::from(10_u32).pow(missing as u32))
    }
}

/// Words become numbers one after the other.
#[derive(Default)]
struct Conversion {
    sign: Option<char>,
    value: Option<Figures>,
    words: Vec<String>,
}

impl Conversion {
    fn convert(mut self, words: &[&str]) -> Vec<String> {
        let mut skips = false;
        for (place, word) in words.iter().enumerate() {
            if std::mem::take(&mut skips) {
                continue;
            }
            let before = place
                .checked_sub(1)
                .and_then(|before| NumberWord::of(words[before]));
            let next = words.get(place + 1).copied();
            skips = self.add(word, before, next);
        }
        self.end_number();
        self.words
    }

    /// Adds a word. Returns whether the next one belongs to it.
    fn add(&mut self, word: &str, before: Option<NumberWord>, next: Option<&str>) -> bool {
        let figures = word.strip_prefix('$').unwrap_or(word);
        if is_figures(figures) {
            self.add_figures(word, figures);
            return false;
        }
        let Some(meaning) = NumberWord::of(word) else {
            self.end_number();
            self.push(word.to_owned());
            return false;
        };
        let next_meaning = next.and_then(NumberWord::of);
        let next_is_figures = next.is_some_and(is_figures);
        match meaning {
            NumberWord::Zero => self.append("0"),
            NumberWord::One(ones) => self.value = Some(self.with_ones(ones, before)),
            NumberWord::OneWithEnding(ones, ending) => {
                let number = self.with_ones(ones, before).text();
                self.push(number + ending);
            }
            NumberWord::Ten(tens) => self.value = Some(self.with_tens(tens)),
            NumberWord::TenWithEnding(tens, ending) => {
                let number = self.with_tens(tens).text();
                self.push(number + ending);
            }
            NumberWord::Multiplier(exponent) => {
                let value = self.multiplied(exponent);
                self.value = Some(value);
            }
            NumberWord::MultiplierWithEnding(exponent, ending) => self.push_multiplied(exponent, ending),
            NumberWord::Sign(sign) => {
                self.end_number();
                if next_meaning.is_some() || next_is_figures {
                    self.sign = Some(sign);
                } else {
                    self.push(word.to_owned());
                }
            }
            NumberWord::Currency(currency) => {
                if let Some(value) = self.value.take() {
                    self.sign = Some(currency);
                    self.push(value.text());
                } else {
                    self.push(word.to_owned());
                }
            }
            NumberWord::Per => {
                if self.value.is_some() && next == Some("cent") {
                    self.end_number_with("%");
                    return true;
                }
                self.end_number();
                self.push(word.to_owned());
            }
            NumberWord::Percent => {
                if self.value.is_some() {
                    self.end_number_with("%");
                } else {
                    self.push(word.to_owned());
                }
            }
            NumberWord::And | NumberWord::Repeat(_) | NumberWord::Point => {
                if next_meaning.is_none() && !next_is_figures {
                    self.end_number();
                    self.push(word.to_owned());
                    return false;
                }
                return self.add_special(word, meaning, before, next_meaning, next_is_figures);
            }
        }
        false
    }

    fn add_figures(&mut self, word: &str, figures: &str) {
        if let Some(Figures::Text(text)) = &mut self.value
            && text.ends_with('.')
        {
            text.push_str(word);
            return;
        }
        self.end_number();
        if figures.len() < word.len() {
            self.sign = Some('$');
        }
        self.value = figures.parse().ok().map(Figures::Whole);
    }

    /// Adds `and`, `double`, `triple` or `point` before a number.
    fn add_special(
        &mut self,
        word: &str,
        meaning: NumberWord,
        before: Option<NumberWord>,
        next: Option<NumberWord>,
        next_is_figures: bool,
    ) -> bool {
        match (meaning, next) {
            // Nothing is left of it after hundreds and thousands.
            (NumberWord::And, _) if matches!(before, Some(NumberWord::Multiplier(_))) => {}
            (NumberWord::Repeat(times), Some(NumberWord::One(ones))) => {
                self.append(&ones.to_string().repeat(times));
                return true;
            }
            (NumberWord::Repeat(times), Some(NumberWord::Zero)) => {
                self.append(&"0".repeat(times));
                return true;
            }
            (NumberWord::Point, next) => {
                if next_is_figures || next.is_some_and(NumberWord::is_decimal) {
                    self.append(".");
                }
            }
            _ => {
                self.end_number();
                self.push(word.to_owned());
            }
        }
        false
    }

    /// Returns the value with a number of 0 to 19 behind or added.
    fn with_ones(&self, ones: u32, before: Option<NumberWord>) -> Figures {
        let Some(value) = &self.value else {
            return Figures::of(ones);
        };
        match value {
            Figures::Text(text) if matches!(before, Some(NumberWord::Ten(_))) && ones < 10 => {
                // The digit takes the place of the zero of tens.
                Figures::Text(format!("{}{ones}", &text[..text.len() - 1]))
            }
            Figures::Whole(whole) if !matches!(before, Some(NumberWord::One(_))) => {
                let unit = if ones < 10 { 10_u32 } else { 100 };
                added_or_behind(whole, ones, unit)
            }
            _ => Figures::Text(format!("{}{ones}", value.text())),
        }
    }

    fn with_tens(&self, tens: u32) -> Figures {
        match &self.value {
            None => Figures::of(tens),
            Some(Figures::Text(text)) => Figures::Text(format!("{text}{tens}")),
            Some(Figures::Whole(whole)) => added_or_behind(whole, tens, 100),
        }
    }

    /// Returns the value times a power of ten. A value that cannot be multiplied ends before.
    fn multiplied(&mut self, exponent: u32) -> Figures {
        let power = || BigUint::from(10_u32).pow(exponent);
        let value = match &self.value {
            None => return Figures::Whole(power()),
            Some(Figures::Whole(whole)) if *whole != BigUint::ZERO => {
                return Figures::Whole(last_thousand_times(whole, power()));
            }
            Some(value) => value.shifted(exponent),
        };
        value.map_or_else(
            || {
                self.end_number();
                Figures::Whole(power())
            },
            Figures::Whole,
        )
    }

    fn push_multiplied(&mut self, exponent: u32, ending: &str) {
        let value = match &self.value {
            Some(Figures::Whole(whole)) => {
                Figures::Whole(last_thousand_times(whole, BigUint::from(10_u32).pow(exponent)))
            }
            _ => self.multiplied(exponent),
        };
        self.push(value.text() + ending);
    }

    /// Appends figures. A value of 0 is replaced.
    fn append(&mut self, figures: &str) {
        let text = match &self.value {
            None => String::new(),
            Some(Figures::Whole(whole)) if *whole == BigUint::ZERO => String::new(),
            Some(value) => value.text(),
        };
        self.value = Some(Figures::Text(text + figures));
    }

    fn end_number(&mut self) {
        self.end_number_with("");
    }

    fn end_number_with(&mut self, ending: &str) {
        if let Some(value) = self.value.take() {
            self.push(value.text() + ending);
        }
    }

    /// Adds a finished word, with the sign before it if there is one.
    fn push(&mut self, mut word: String) {
        if let Some(sign) = self.sign.take() {
            word.insert(0, sign);
        }
        self.value = None;
        self.words.push(word);
    }
}

/// Adds a number to a multiple of `unit`, and writes it behind other numbers.
fn added_or_behind(whole: &BigUint, number: u32, unit: u32) -> Figures {
    if whole % unit == BigUint::ZERO {
        Figures::Whole(whole + number)
    } else {
        Figures::Text(format!("{whole}{number}"))
    }
}

/// Multiplies the part below a thousand.
fn last_thousand_times(whole: &BigUint, power: BigUint) -> BigUint {
    let rest = whole % 1000_u32;
    whole - &rest + rest * power
}

fn is_figures(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}
