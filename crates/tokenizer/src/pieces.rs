//! The pieces of a text that are divided into tokens one by one: words with the space before them, numbers, runs of other characters, and spaces. The
//! rules are those of the regular expressions in published tokenizers.

use serde_json::Value;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory as _};

/// The endings that GPT-2's expression separates from words.
const ENDINGS: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];

/// The expression of Llama 3.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The most digits of a piece in Llama 3.
const DIGITS: usize = 3;

/// How texts are divided into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Division {
    /// As GPT-2.
    Gpt2,
    /// As Llama 3.
    Llama3,
}

impl Division {
    /// Returns the division that the `pre_tokenizer` of a tokenizer's file describes. `None` for one that is not known.
    pub(crate) fn of(pre_tokenizer: &Value) -> Option<Self> {
        let kind = |value: &Value| value.get("type")?.as_str().map(str::to_owned);
        let adds_space = |value: &Value| value.get("add_prefix_space").and_then(Value::as_bool) == Some(true);
        match kind(pre_tokenizer)?.as_str() {
            "ByteLevel" => {
                let divides = pre_tokenizer.get("use_regex").and_then(Value::as_bool) != Some(false);
                (divides && !adds_space(pre_tokenizer)).then_some(Self::Gpt2)
            }
            "Sequence" => match pre_tokenizer.get("pretokenizers")?.as_array()?.as_slice() {
                [split, bytes] if kind(split)? == "Split" && kind(bytes)? == "ByteLevel" => {
                    let divides = bytes.get("use_regex").and_then(Value::as_bool) != Some(false);
                    let is_known = split.pointer("/pattern/Regex")?.as_str()? == LLAMA3;
                    (is_known && !divides && !adds_space(bytes)).then_some(Self::Llama3)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the pieces of a text, which together are the text.
    pub(crate) fn pieces(self, text: &str) -> impl Iterator<Item = &str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            // Each rule takes at least a character.
            let length = self.first_length(rest).max(first.len_utf8());
            let (piece, after) = rest.split_at(length);
            rest = after;
            Some(piece)
        })
    }

    /// Returns the bytes of the first piece.
    fn first_length(self, text: &str) -> usize {
        let ending = ENDINGS.iter().find(|ending| match self {
            Self::Gpt2 => text.starts_with(**ending),
            Self::Llama3 => text
                .get(..ending.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(ending)),
        });
        if let Some(ending) = ending {
            return ending.len();
        }
        let spaced = text.strip_prefix(' ');
        let with_space = |is_part: fn(char) -> bool| {
            [Some(text), spaced].into_iter().flatten().find_map(|from| {
                let length = run(from, is_part);
                (length > 0).then(|| text.len() - from.len() + length)
            })
        };
        let found = match self {
            Self::Gpt2 => with_space(is_alphabetic)
                .or_else(|| with_space(is_number))
                .or_else(|| with_space(is_other)),
            Self::Llama3 => Self::word(text)
                .or_else(|| {
                    let found = text.chars().take_while(|c| is_number(*c)).take(DIGITS);
                    let length: usize = found.map(char::len_utf8).sum();
                    (length > 0).then_some(length)
                })
                .or_else(|| {
                    let length = with_space(is_other)?;
                    Some(length + run(&text[length..], is_line_end))
                })
                .or_else(|| {
                    let spaces = &text[..run(text, char::is_whitespace)];
                    spaces.rfind(is_line_end).map(|at| at + 1)
                }),
        };
        found.unwrap_or_else(|| Self::spaces(text))
    }

    /// Returns the bytes of a word with at most one other character before it, at the beginning of a text.
    fn word(text: &str) -> Option<usize> {
        let first = text.chars().next()?;
        let begin = if is_alphabetic(first) || is_number(first) || is_line_end(first) {
            0
        } else {
            first.len_utf8()
        };
        let rest = run(&text[begin..], is_alphabetic);
        (rest > 0).then_some(begin + rest)
    }

    /// Returns the bytes of the spaces at the beginning of a text. The last one belongs to the word behind it.
    fn spaces(text: &str) -> usize {
        let length = run(text, char::is_whitespace);
        if length == text.len() {
            return length;
        }
        let last = text[..length].chars().next_back().map_or(0, char::len_utf8);
        if length > last { length - last } else { length }
    }
}

/// Returns the bytes of the characters of a kind at the beginning of a text.
fn run(text: &str, is_part: fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// Whether `\p{L}` of a regular expression matches `c`: the characters of no other group.
fn is_alphabetic(c: char) -> bool {
    use GeneralCategoryGroup::{Mark, Number, Other, Punctuation, Separator, Symbol};
    let is_of_another = |group| matches!(group, Mark | Number | Other | Punctuation | Separator | Symbol);
    c.is_ascii_alphabetic() || (!c.is_ascii() && !is_of_another(c.general_category_group()))
}

fn is_number(c: char) -> bool {
    c.is_ascii_digit() || (!c.is_ascii() && c.general_category_group() == GeneralCategoryGroup::Number)
}

fn is_other(c: char) -> bool {
    !c.is_whitespace() && !is_alphabetic(c) && !is_number(c)
}

const fn is_line_end(c: char) -> bool {
    matches!(c, '\r' | '\n')
}
