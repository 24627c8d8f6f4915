//! F1 and exact match of answers, as the reference's `evaluate_v1.1.py` computes them, in the same order of operations.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use regatta_types::accuracy_line::squad_line;

use regatta_datasets::squad::{Paragraph, Question, is_python_space, is_word};

/// The accuracy of a run on SQuAD. Its `Display` is the line of the official script, which submission checkers search in
/// `accuracy.txt`.
#[derive(Debug, Clone, PartialEq)]
pub struct SquadScore {
    /// The mean F1 of all questions, in percent.
    pub f1: f64,
    /// The number of questions with an exact answer.
    pub exact: usize,
    /// The number of questions.
    pub total: usize,
    /// The number of questions with a response. Those without one count as wrong.
    pub answered: usize,
    /// The number of samples with logits of minus infinity, which count as in the reference: they are the lowest.
    pub masked: usize,
    /// The number of further responses to the same samples. The last one counts.
    pub duplicates: usize,
    /// The indices of the samples without a response, ascending.
    pub missing: Vec<usize>,
}

impl fmt::Display for SquadScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&squad_line(self.exact, self.total, self.f1))
    }
}

/// Returns the F1 in percent and the number of exact answers. `answers` has the answer to each question's identifier.
pub(super) fn evaluate(paragraphs: &[Paragraph], answers: &HashMap<&str, String>) -> (f64, usize, usize) {
    let (mut f1, mut exact, mut total) = (0.0, 0, 0);
    for question in paragraphs.iter().flat_map(|paragraph| &paragraph.qas) {
        total += 1;
        let answer = answers.get(question.id.as_str()).map_or("", String::as_str);
        let (of_question, is_exact) = best(question, answer);
        f1 += of_question;
        exact += usize::from(is_exact);
    }
    (100.0 * f1 / total as f64, exact, total)
}

/// Compares an answer with all accepted ones.
fn best(question: &Question, answer: &str) -> (f64, bool) {
    let found = normalised(answer);
    let (mut highest, mut is_exact) = (0.0_f64, false);
    for accepted in &question.answers {
        let accepted = normalised(&accepted.text);
        highest = highest.max(f1(&found, &accepted));
        is_exact |= found == accepted;
    }
    (highest, is_exact)
}

/// Returns the F1 of the words of an answer, which are not in an order.
fn f1(found: &[String], accepted: &[String]) -> f64 {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for word in accepted {
        *left.entry(word).or_default() += 1;
    }
    let mut same = 0;
    for word in found {
        if let Some(count) = left.get_mut(word.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            same += 1;
        }
    }
    if same == 0 {
        return 0.0;
    }
    let precision = f64::from(same) / found.len() as f64;
    let recall = f64::from(same) / accepted.len() as f64;
    (2.0 * precision * recall) / (precision + recall)
}

/// Returns the words of an answer in lower case, without punctuation and articles.
fn normalised(answer: &str) -> Vec<String> {
    let mut text = answer.to_lowercase();
    text.retain(|c| !c.is_ascii_punctuation());
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let is_run = is_word(first);
        let end = rest.find(|c| is_word(c) != is_run).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(end);
        plain.push_str(if matches!(run, "a" | "an" | "the") {
            " "
        } else {
            run
        });
        rest = behind;
    }
    plain
        .split(is_python_space)
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_compared_without_articles_and_punctuation() {
        assert_eq!(
            normalised("The Theory, of A-an «the»\u{301} U.S.\u{a0}ΣΑΣ"),
            ["theory", "of", "aan", "«", "»\u{301}", "us", "σας"]
        );
        let words = |text| normalised(text);
        assert!(
            (f1(&words("a b b c"), &words("b c c")) - 2.0 * (2.0 / 3.0) * (2.0 / 3.0) / (4.0 / 3.0)).abs()
                < 1e-15
        );
        assert!(f1(&words("the"), &words("an")).abs() < f64::EPSILON);
        let score = SquadScore {
            f1: 100.0 / 3.0,
            exact: 1,
            total: 2,
            answered: 2,
            masked: 0,
            duplicates: 0,
            missing: Vec::new(),
        };
        assert_eq!(
            score.to_string(),
            r#"{"exact_match": 50.0, "f1": 33.333333333333336}"#
        );
    }
}
