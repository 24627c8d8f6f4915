//! Samples of BERT: tokens of a question and of a window of its text, as `convert_examples_to_features` of the reference's
//! `create_squad_data.py` arranges them.

use super::vocabulary::Vocabulary;

/// Lengths in tokens.
#[derive(Debug, Clone, Copy)]
pub struct Lengths {
    /// A sample.
    pub sequence: usize,
    /// The longest question.
    pub question: usize,
    /// The distance between two windows.
    pub stride: usize,
}

/// A text that questions are about.
#[derive(Debug)]
pub struct Passage<'a> {
    /// Its words, separated by white space.
    pub words: Vec<&'a str>,
    /// The tokens of all words.
    pub tokens: Vec<i32>,
    /// The word of each token.
    pub word_of: Vec<usize>,
}

impl<'a> Passage<'a> {
    /// Splits a text into words and tokens.
    pub fn new(text: &'a str, vocabulary: &Vocabulary) -> Self {
        let is_separator = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n' | '\u{202f}');
        let words: Vec<&str> = text.split(is_separator).filter(|word| !word.is_empty()).collect();
        let (mut tokens, mut word_of) = (Vec::new(), Vec::new());
        for (number, word) in words.iter().enumerate() {
            tokens.extend(vocabulary.tokenize(word));
            word_of.resize(tokens.len(), number);
        }
        Self {
            words,
            tokens,
            word_of,
        }
    }
}

/// The part of a text in one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its first token in the text.
    pub start: usize,
    /// The number of its tokens.
    pub length: usize,
}

/// A question with the windows of its text. Each window is a sample.
#[derive(Debug)]
pub struct Windows {
    question: Vec<i32>,
    windows: Vec<Window>,
}

impl Windows {
    /// Tokenizes a question and divides a text of `tokens` tokens.
    pub fn new(question: &str, tokens: usize, vocabulary: &Vocabulary, lengths: Lengths) -> Self {
        let mut question = vocabulary.tokenize(question);
        question.truncate(lengths.question);
        // [CLS], [SEP] and [SEP].
        let longest = lengths.sequence.saturating_sub(question.len() + 3);
        let (mut windows, mut start) = (Vec::new(), 0);
        while start < tokens && longest > 0 {
            let length = longest.min(tokens - start);
            windows.push(Window { start, length });
            if start + length == tokens {
                break;
            }
            start += length.min(lengths.stride);
        }
        Self { question, windows }
    }

    /// Returns the windows.
    pub fn all(&self) -> &[Window] {
        &self.windows
    }

    /// Returns the position in a sample of a window's first token.
    pub fn offset(&self) -> usize {
        self.question.len() + 2
    }

    /// Returns the window in which a token of the text has the most context on its poorer side.
    pub fn best_for(&self, token: usize) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for (number, window) in self.windows.iter().enumerate() {
            let last = window.start + window.length - 1;
            if !(window.start..=last).contains(&token) {
                continue;
            }
            let context = (token - window.start).min(last - token);
            let score = context as f64 + 0.01 * window.length as f64;
            if best.is_none_or(|(_, highest)| score > highest) {
                best = Some((number, score));
            }
        }
        best.map(|(number, _)| number)
    }

    /// Appends a sample to the arrays of token ids, mask and segments, each as `length` 32-bit integers.
    pub fn push_sample(
        &self,
        window: Window,
        passage: &Passage<'_>,
        vocabulary: &Vocabulary,
        length: usize,
        arrays: &mut [Vec<u8>; 3],
    ) {
        let text = &passage.tokens[window.start..window.start + window.length];
        let first = [vocabulary.begin]
            .into_iter()
            .chain(self.question.iter().copied())
            .chain([vocabulary.separator]);
        let second = text.iter().copied().chain([vocabulary.separator]);
        let used = first.map(|id| [id, 1, 0]).chain(second.map(|id| [id, 1, 1]));
        for row in used.chain(std::iter::repeat([0; 3])).take(length) {
            for (array, value) in arrays.iter_mut().zip(row) {
                array.extend(value.to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_divided_into_overlapping_windows() {
        let tokens = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwho\na\nb\nc\nd\ne\nf\ng\n";
        let vocabulary = Vocabulary::parse(tokens, 13).unwrap();
        let passage = Passage::new("a b\u{202f}c  d\te f g", &vocabulary);
        assert_eq!(passage.words.len(), 7);
        let lengths = Lengths {
            sequence: 8,
            question: 1,
            stride: 2,
        };
        let windows = Windows::new("who who", passage.tokens.len(), &vocabulary, lengths);
        let window = |start, length| Window { start, length };
        assert_eq!(windows.all(), [window(0, 4), window(2, 4), window(4, 3)]);
        let best: Vec<_> = (0..8).map(|token| windows.best_for(token)).collect();
        assert_eq!(
            best,
            [
                Some(0),
                Some(0),
                Some(0),
                Some(1),
                Some(1),
                Some(2),
                Some(2),
                None
            ]
        );
        let mut arrays = [const { Vec::new() }; 3];
        windows.push_sample(windows.all()[2], &passage, &vocabulary, 8, &mut arrays);
        let rows = arrays.map(|array| array.iter().copied().step_by(4).collect::<Vec<u8>>());
        assert_eq!(
            rows,
            [
                vec![2, 5, 3, 10, 11, 12, 3, 0],
                vec![1, 1, 1, 1, 1, 1, 1, 0],
                vec![0, 0, 0, 1, 1, 1, 1, 0]
            ]
        );
    }
}
