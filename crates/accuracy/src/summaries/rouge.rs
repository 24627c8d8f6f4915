//! ROUGE of a text as `rouge_score` computes it: C.-Y. Lin, "ROUGE: a Package for Automatic Evaluation of Summaries", 2004.

use std::collections::HashMap;

use super::words::words;

/// The four F-measures of a text, as fractions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rouge {
    /// ROUGE-1: common words.
    pub(super) one: f64,
    /// ROUGE-2: common pairs of words.
    pub(super) two: f64,
    /// ROUGE-L: the longest common subsequence of words.
    pub(super) longest: f64,
    /// ROUGE-Lsum: the union of the longest common subsequences of sentences.
    pub(super) longest_of_sentences: f64,
}

impl Rouge {
    /// Compares texts, whose sentences are separated by line ends.
    pub(super) fn new(reference: &str, text: &str) -> Self {
        let (of_reference, of_text) = (words(reference), words(text));
        Self {
            one: common_runs(&of_reference, &of_text, 1),
            two: common_runs(&of_reference, &of_text, 2),
            longest: longest(&of_reference, &of_text),
            longest_of_sentences: longest_of_sentences(&sentences(reference), &sentences(text)),
        }
    }
}

/// Returns the words of each line that is not empty.
fn sentences(text: &str) -> Vec<Vec<String>> {
    text.split('\n')
        .filter(|line| !line.is_empty())
        .map(words)
        .collect()
}

/// Returns the F-measure of `hits` words, of which there are `expected` in the reference and `found` in the text.
fn f_measure(hits: usize, expected: usize, found: usize) -> f64 {
    let (precision, recall) = (hits as f64 / found as f64, hits as f64 / expected as f64);
    if precision + recall > 0.0 {
        2.0 * precision * recall / (precision + recall)
    } else {
        0.0
    }
}

/// Returns the F-measure of the runs of `length` words.
fn common_runs(reference: &[String], text: &[String], length: usize) -> f64 {
    let mut counts: HashMap<&[String], usize> = HashMap::new();
    for run in text.windows(length) {
        *counts.entry(run).or_default() += 1;
    }
    let mut hits = 0;
    for run in reference.windows(length) {
        if let Some(left) = counts.get_mut(run).filter(|left| **left > 0) {
            *left -= 1;
            hits += 1;
        }
    }
    let count = |words: &[String]| (words.len() + 1).saturating_sub(length).max(1);
    f_measure(hits, count(reference), count(text))
}

fn longest(reference: &[String], text: &[String]) -> f64 {
    if reference.is_empty() || text.is_empty() {
        return 0.0;
    }
    let table = Lengths::new(reference, text);
    f_measure(table.at(reference.len(), text.len()), reference.len(), text.len())
}

fn longest_of_sentences(reference: &[Vec<String>], text: &[Vec<String>]) -> f64 {
    let count = |sentences: &[Vec<String>]| sentences.iter().map(Vec::len).sum::<usize>();
    let (expected, found) = (count(reference), count(text));
    if expected == 0 || found == 0 {
        return 0.0;
    }
    // A word counts at most as often as both texts have it.
    let mut left = [reference, text].map(|sentences| {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for word in sentences.iter().flatten() {
            *counts.entry(word).or_default() += 1;
        }
        counts
    });
    let mut hits = 0;
    for sentence in reference {
        let mut is_common = vec![false; sentence.len()];
        for other in text {
            mark_common(sentence, other, &mut is_common);
        }
        for (word, _) in sentence.iter().zip(is_common).filter(|(_, is_common)| *is_common) {
            let has = |counts: &HashMap<&str, usize>| counts.get(word.as_str()).is_some_and(|left| *left > 0);
            if left.iter().all(has) {
                hits += 1;
                for counts in &mut left {
                    *counts.entry(word).or_default() -= 1;
                }
            }
        }
    }
    f_measure(hits, expected, found)
}

/// Marks the words of `reference` in a longest common subsequence. Of equally long ones, it is that of `rouge_score`.
fn mark_common(reference: &[String], text: &[String], is_common: &mut [bool]) {
    let table = Lengths::new(reference, text);
    let (mut row, mut column) = (reference.len(), text.len());
    while row > 0 && column > 0 {
        if reference[row - 1] == text[column - 1] {
            is_common[row - 1] = true;
            row -= 1;
            column -= 1;
        } else if table.at(row, column - 1) > table.at(row - 1, column) {
            column -= 1;
        } else {
            row -= 1;
        }
    }
}

/// The lengths of the longest common subsequences of all beginnings of two texts.
struct Lengths {
    values: Vec<usize>,
    columns: usize,
}

impl Lengths {
    fn new(reference: &[String], text: &[String]) -> Self {
        let columns = text.len() + 1;
        let mut lengths = Self {
            values: vec![0; (reference.len() + 1) * columns],
            columns,
        };
        for (row, word) in reference.iter().enumerate() {
            for (column, other) in text.iter().enumerate() {
                let value = if word == other {
                    lengths.at(row, column) + 1
                } else {
                    lengths.at(row, column + 1).max(lengths.at(row + 1, column))
                };
                lengths.values[(row + 1) * columns + column + 1] = value;
            }
        }
        lengths
    }

    fn at(&self, row: usize, column: usize) -> usize {
        self.values[row * self.columns + column]
    }
}
