//! Splits a text into sentences as NLTK's `sent_tokenize` does.

use std::ops::Range;

use super::{
    sentence_model::SentenceModel,
    sentence_tokens::{ends_word, has_sentence_end},
};
use regatta_datasets::squad::is_python_space;

pub(super) fn sentences<'a>(text: &'a str, model: &SentenceModel) -> Vec<&'a str> {
    realigned(text, &ranges(text, model))
        .into_iter()
        .filter_map(|range| text.get(range))
        .filter(|sentence| !sentence.is_empty())
        .collect()
}

/// A mark that may end a sentence.
#[derive(Debug, Clone)]
struct Mark<'a> {
    /// The mark and what decides about it: the word before it, and the punctuation or the word behind it.
    context: Range<usize>,
    /// Where the word before it begins and ends.
    word: Range<usize>,
    end: usize,
    /// The word behind it, unless it is punctuation.
    next: Option<&'a str>,
}

/// Returns the sentences' ranges, without white space at their ends.
fn ranges(text: &str, model: &SentenceModel) -> Vec<Range<usize>> {
    let (mut ranges, mut start) = (Vec::new(), 0);
    for mark in marks(text) {
        if has_sentence_end(&text[mark.context.clone()], model) {
            ranges.push(start..mark.end);
            let next = mark.next.map_or(0, str::len);
            start = mark.context.end - next;
            if mark.next.is_none() {
                start = mark.end;
            }
        }
    }
    let end = text.trim_end_matches(is_python_space).len();
    ranges.push(start..end.max(start));
    ranges
}

/// Returns the marks of a text. Of several behind one word, only the last.
fn marks(text: &str) -> Vec<Mark<'_>> {
    let mut marks: Vec<Mark<'_>> = Vec::new();
    let mut previous: Option<Mark<'_>> = None;
    for (at, character) in text.char_indices() {
        if !matches!(character, '.' | '?' | '!') {
            continue;
        }
        let end = at + 1;
        let Some((context_end, next)) = behind(text, end) else {
            continue;
        };
        let last = previous.as_ref().map_or(0..0, |mark| mark.word.clone());
        let before = &text[last.end..at];
        let space = before.rfind([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
        // A space at the very beginning counts as none, as in NLTK.
        let word = match space {
            Some(space) if space > 0 => last.end + space + 1..at,
            _ => last.start..at,
        };
        if let Some(mark) = previous.take().filter(|_| last.end <= word.start) {
            marks.push(mark);
        }
        previous = Some(Mark {
            context: word.start..context_end,
            word,
            end,
            next,
        });
    }
    marks.extend(previous);
    marks
}

/// Returns the end of the text after a mark, and the word there: punctuation, or white space followed by a word.
fn behind(text: &str, end: usize) -> Option<(usize, Option<&str>)> {
    let rest = &text[end..];
    let first = rest.chars().next()?;
    if ends_word(first) {
        return Some((end + first.len_utf8(), None));
    }
    let word = rest.trim_start_matches(is_python_space);
    if word.len() == rest.len() || word.is_empty() {
        return None;
    }
    let length = word.find(is_python_space).unwrap_or(word.len());
    Some((text.len() - word.len() + length, Some(&word[..length])))
}

/// Moves closing punctuation to the sentence before it.
fn realigned(text: &str, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    let (mut moved, mut shift) = (Vec::new(), 0);
    for (index, range) in ranges.iter().enumerate() {
        let start = range.start + shift;
        let closing = ranges
            .get(index + 1)
            .and_then(|next| closing(&text[next.clone()]));
        match closing {
            Some((length, with_space)) => {
                moved.push(start..ranges[index + 1].start + length);
                shift = with_space;
            }
            None => {
                moved.push(start..range.end.max(start));
                shift = 0;
            }
        }
    }
    moved
}

/// Returns the length of the closing punctuation that a text begins with, without and with the white space behind it.
fn closing(text: &str) -> Option<(usize, usize)> {
    let end = text
        .find(|c| !matches!(c, '"' | '\'' | ')' | ']' | '}'))
        .unwrap_or(text.len());
    (1..=end).find_map(|length| {
        let rest = &text[length..];
        let words = rest.trim_start_matches(is_python_space);
        let is_end = rest.is_empty() || words.len() < rest.len() || rest.starts_with("--");
        is_end.then_some((length, text.len() - words.len()))
    })
}
