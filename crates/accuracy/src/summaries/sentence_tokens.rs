//! The tokens of a text in NLTK's sentence tokenizer, and which of them end a sentence.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

use super::sentence_model::SentenceModel;
use regatta_datasets::squad::{is_python_space, is_word};

/// The type of tokens that are numbers.
const NUMBER: &str = "##number##";

/// Whether a character ends a word before it.
pub(super) const fn ends_word(c: char) -> bool {
    matches!(
        c,
        ')' | '"' | ';' | '}' | ']' | '*' | ':' | '@' | '\'' | '(' | '{' | '[' | '!' | '?'
    )
}

/// Whether a character begins no word.
const fn begins_no_word(c: char) -> bool {
    matches!(
        c,
        '(' | '"' | '`' | '{' | '[' | ':' | ';' | '&' | '#' | '*' | '@' | ')' | '}' | ']' | '-' | ','
    )
}

/// Returns whether a token before the last one ends a sentence.
pub(super) fn has_sentence_end(text: &str, model: &SentenceModel) -> bool {
    let mut tokens: Vec<Token<'_>> = text
        .split('\n')
        .flat_map(split)
        .map(|text| Token::new(text, model))
        .collect();
    for index in 1..tokens.len() {
        let (before, rest) = tokens.split_at_mut(index);
        let token = &mut before[index - 1];
        token.judge_before(&rest[0], model);
        if token.ends_sentence {
            return true;
        }
    }
    false
}

/// Splits a line into words, punctuation that is not a period, and runs of periods and hyphens.
fn split(line: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (Vec::new(), line);
    while let Some(first) = rest.chars().next() {
        if is_python_space(first) {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let length = match run_of_punctuation(rest) {
            Some(length) => length,
            None if begins_no_word(first) => first.len_utf8(),
            None => word_length(rest, first),
        };
        tokens.push(&rest[..length]);
        rest = &rest[length..];
    }
    tokens
}

/// Returns the length of the run of hyphens, of periods, or of periods with single spaces that a text begins with.
fn run_of_punctuation(text: &str) -> Option<usize> {
    let run = |c: u8| text.bytes().take_while(|&byte| byte == c).count();
    if let Some(length) = [run(b'-'), run(b'.')].into_iter().find(|&length| length >= 2) {
        return Some(length);
    }
    let (mut end, mut periods) = (0, 0);
    while text[end..].starts_with('.') {
        periods += 1;
        let space = text[end + 1..].chars().next().filter(|&c| is_python_space(c));
        let next = end + 1 + space.map_or(0, char::len_utf8);
        if space.is_none() || !text[next..].starts_with('.') {
            return (periods >= 3).then_some(end + 1);
        }
        end = next;
    }
    None
}

/// Returns the length of the word at the beginning of a text: at least the first character, up to where a word ends.
fn word_length(text: &str, first: char) -> usize {
    let is_end = |at: &str| {
        at.chars()
            .next()
            .is_none_or(|c| is_python_space(c) || ends_word(c) || run_of_punctuation(at).is_some())
    };
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.skip_while(|&at| at < first.len_utf8())
        .find(|&at| {
            let rest = &text[at..];
            is_end(rest) || rest.strip_prefix(',').is_some_and(is_end)
        })
        .unwrap_or(text.len())
}

/// A token with its properties.
struct Token<'a> {
    text: &'a str,
    /// In lower case, or [`NUMBER`].
    kind: String,
    ends_sentence: bool,
    is_abbreviation: bool,
    is_ellipsis: bool,
}

impl<'a> Token<'a> {
    /// Judges a token by itself.
    fn new(text: &'a str, model: &SentenceModel) -> Self {
        let lower = text.to_lowercase();
        let is_known = |stem: &str| {
            let last = stem.rsplit('-').next().unwrap_or(stem);
            model.abbreviations.contains(stem) || model.abbreviations.contains(last)
        };
        let is_ellipsis = text.len() >= 2 && text.bytes().all(|byte| byte == b'.');
        let stem = text.strip_suffix('.').filter(|stem| !stem.ends_with('.'));
        let is_abbreviation = stem.is_some_and(|stem| is_known(&stem.to_lowercase()));
        let is_mark = matches!(text, "." | "?" | "!");
        Self {
            text,
            kind: if is_number(&lower) {
                NUMBER.to_owned()
            } else {
                lower
            },
            ends_sentence: is_mark || (stem.is_some() && !is_abbreviation),
            is_abbreviation: !is_mark && is_abbreviation,
            is_ellipsis,
        }
    }

    /// Corrects the judgement of a token by the one behind it, which is judged by itself.
    fn judge_before(&mut self, next: &Self, model: &SentenceModel) {
        if !self.text.ends_with('.') {
            return;
        }
        let kind = without_period(&self.kind);
        let next_kind = next.kind_in_sentence();
        let is_initial = self.is_initial();
        if model
            .collocations
            .contains(&(kind.to_owned(), next_kind.to_owned()))
        {
            self.ends_sentence = false;
            self.is_abbreviation = true;
            return;
        }
        let starts = next.starts_sentence(model);
        if (self.is_abbreviation || self.is_ellipsis)
            && !is_initial
            && (starts == Some(true) || (next.is_upper() && model.starters.contains(next_kind)))
        {
            self.ends_sentence = true;
            return;
        }
        if !is_initial && kind != NUMBER {
            return;
        }
        let is_name = starts.is_none() && is_initial && next.is_upper() && !model.contexts(next_kind).lower();
        if starts == Some(false) || is_name {
            self.ends_sentence = false;
            self.is_abbreviation = true;
        }
    }

    /// Whether the token begins a sentence, by its case. `None` when that is unknown.
    fn starts_sentence(&self, model: &SentenceModel) -> Option<bool> {
        if matches!(self.text, ";" | ":" | "," | "." | "!" | "?") {
            return Some(false);
        }
        let contexts = model.contexts(self.kind_in_sentence());
        if self.is_upper() && contexts.lower() && !contexts.upper_inside() {
            return Some(true);
        }
        let is_lower = self.text.chars().next().is_some_and(char::is_lowercase);
        (is_lower && (contexts.upper() || !contexts.lower_at_beginning())).then_some(false)
    }

    /// The kind without the period that ends a sentence.
    fn kind_in_sentence(&self) -> &str {
        if self.ends_sentence {
            without_period(&self.kind)
        } else {
            &self.kind
        }
    }

    fn is_upper(&self) -> bool {
        self.text.chars().next().is_some_and(char::is_uppercase)
    }

    /// Whether the token is a letter and a period.
    fn is_initial(&self) -> bool {
        let mut characters = self.text.chars();
        characters.next().is_some_and(|c| is_word(c) && !is_digit(c)) && characters.as_str() == "."
    }
}

fn without_period(kind: &str) -> &str {
    kind.strip_suffix('.')
        .filter(|stem| !stem.is_empty())
        .unwrap_or(kind)
}

/// Whether a token is a number: an optional minus, an optional period or comma, and digits with periods, commas and hyphens.
fn is_number(token: &str) -> bool {
    let rest = token.strip_prefix('-').unwrap_or(token);
    let rest = rest.strip_prefix(['.', ',']).unwrap_or(rest);
    let mut characters = rest.chars();
    characters.next().is_some_and(is_digit) && characters.all(|c| is_digit(c) || matches!(c, ',' | '.' | '-'))
}

/// Whether a regular expression's `\d` matches `c`.
fn is_digit(c: char) -> bool {
    c.general_category() == GeneralCategory::DecimalNumber
}
