//! Parses `accuracy.txt`: metrics as the reference accuracy scripts print them, and the hash that truncation appends.
//!
//! The official checkers search for patterns at the start of a line or anywhere in it. Later rounds accept more forms
//! ([`AccuracyForms`]). Numbers consist of digits and dots, without sign or exponent.

use regatta_catalogue::round::AccuracyForms;

/// Returns the text of a metric's value in a line, or `None` if the line does not have it.
pub fn metric<'a>(name: &str, forms: AccuracyForms, line: &'a str) -> Option<&'a str> {
    let loose = forms == AccuracyForms::Loose;
    match name {
        "acc" => top1(line, forms),
        "mAP" if loose => last(line, &["mAP=", "'Total':"], after_space),
        "mAP" => number(line.strip_prefix("mAP=")?),
        "F1" => f1(line),
        "WER" | "ACCURACY" => word_error_rate(line),
        "DICE" => dice(line),
        "ROUGE1" => quoted(line, "'rouge1':", loose),
        "ROUGE2" => quoted(line, "'rouge2':", loose),
        "ROUGEL" => quoted(line, "'rougeL':", loose),
        "ROUGELSUM" => quoted(line, "'rougeLsum':", loose),
        "GEN_LEN" => quoted(line, "'gen_len':", false),
        "TOKENS_PER_SAMPLE" => quoted(line, "'tokens_per_sample':", false),
        "exact_match" => quoted(line, "'exact_match':", false),
        "gsm8k_accuracy" => quoted(line, "'gsm8k':", false),
        "mbxp_accuracy" => quoted(line, "'mbxp':", false),
        "vbench_score" => quoted(line, "'vbench_score':", false),
        "CLIP_SCORE" => quoted(line, "'CLIP_SCORE':", loose),
        "FID_SCORE" => quoted(line, "'FID_SCORE':", loose),
        "AUC" => number(line.strip_prefix("AUC=")?),
        "DLRM_NE" => spaced(line, "metric/lifetime_ne/rating:"),
        "DLRM_ACC" => spaced(line, "metric/lifetime_accuracy/rating:"),
        "DLRM_AUC" => spaced(line, "metric/lifetime_gauc/rating:"),
        "F1_HIERARCHICAL" => {
            let inner = line.strip_prefix('{')?;
            spaced(inner.get(..inner.rfind('}')?)?, "\"f1\":")
        }
        "E2E_ACCURACY" => after_space(line.strip_prefix("Accuracy:")?),
        _ => None,
    }
}

/// Returns the last value of a metric in the output of a reference script, in any form that a round accepts. `name` is the metric's
/// official name.
#[must_use]
pub fn last_figure(name: &str, output: &str) -> Option<f64> {
    let last = output
        .lines()
        .rev()
        .find_map(|line| metric(name, AccuracyForms::Loose, line));
    last?.parse().ok()
}

/// Parses the output of `accuracy-imagenet.py`: accuracy in percent, number of correct samples, number of samples.
pub(crate) fn counted(line: &str) -> Option<(f64, u64, u64)> {
    let (percent, rest) = line.strip_prefix("accuracy=")?.split_once("%, good=")?;
    let (good, total) = rest.split_once(", total=")?;
    let total = number(total)?;
    Some((percent.parse().ok()?, good.parse().ok()?, total.parse().ok()?))
}

/// Returns the hash in a line: letters, digits and underscores from `hash=` to the end of the line.
pub(crate) fn hash(line: &str) -> Option<&str> {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let hash = line.strip_prefix("hash=")?;
    let word = |c: char| c.is_alphanumeric() || c == '_';
    (!hash.is_empty() && hash.chars().all(word)).then_some(hash)
}

/// Returns whether TEST06's verification reports that all its checks passed.
pub(crate) fn test06_passed<'a>(lines: impl Iterator<Item = &'a str> + Clone) -> bool {
    let has_line = |text: &str| lines.clone().any(|line| line.trim() == text);
    let first = has_line("First token check pass: True") || has_line("First token check pass: Skipped");
    first && has_line("EOS check pass: True") && has_line("Sample length check pass: True")
}

fn number(text: &str) -> Option<&str> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text.get(..end).filter(|digits| !digits.is_empty())
}

/// Applies `take` after every occurrence of `openers` in the line, and returns the last result.
fn last<'a>(line: &'a str, openers: &[&str], take: impl Fn(&'a str) -> Option<&'a str>) -> Option<&'a str> {
    openers
        .iter()
        .flat_map(|opener| {
            line.rmatch_indices(opener)
                .map(move |(at, _)| at + opener.len())
                .find_map(|at| take(line.get(at..)?).map(|found| (at, found)))
        })
        .max_by_key(|&(at, _)| at)
        .map(|(_, found)| found)
}

fn after_space(rest: &str) -> Option<&str> {
    number(rest.trim_start_matches(char::is_whitespace))
}

fn spaced<'a>(line: &'a str, opener: &str) -> Option<&'a str> {
    last(line, &[opener], after_space)
}

fn quoted<'a>(line: &'a str, opener: &str, loose: bool) -> Option<&'a str> {
    last(line, &[opener], |rest| {
        let after = rest.strip_prefix(char::is_whitespace)?;
        if loose {
            let after = after.trim_start_matches(char::is_whitespace);
            number(after.strip_prefix('\'').unwrap_or(after))
        } else {
            number(after)
        }
    })
}

fn top1(line: &str, forms: AccuracyForms) -> Option<&str> {
    if forms == AccuracyForms::Strict {
        return number(line.strip_prefix("accuracy=")?);
    }
    let rest = line
        .strip_prefix("{\"accuracy")
        .or_else(|| line.strip_prefix("accuracy"))?;
    let rest = rest.trim_start_matches(['"', ':', ' ']);
    let rest = rest.strip_prefix('=').unwrap_or(rest);
    number(rest.trim_start_matches(char::is_whitespace))
}

fn f1(line: &str) -> Option<&str> {
    let name = |text: &'static str| move |rest: &'_ str| after_quoted(rest, text).map(str::len);
    let rest = line.strip_prefix('{')?;
    let rest = rest.get(rest.len() - name("exact_match")(rest)?..)?;
    let exact = number(rest)?;
    let rest = rest.get(exact.len()..)?.strip_prefix(',')?;
    let rest = rest.trim_start_matches(char::is_whitespace);
    let rest = rest.get(rest.len() - name("f1")(rest)?..)?;
    let value = number(rest)?;
    rest.get(value.len()..)?.starts_with('}').then_some(value)
}

/// Returns the text after a quoted name, its colon and white space.
fn after_quoted<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let quote = ['"', '\''];
    let rest = text.strip_prefix(quote)?.strip_prefix(name)?;
    let rest = rest.strip_prefix(quote)?.strip_prefix(':')?;
    Some(rest.trim_start_matches(char::is_whitespace))
}

fn word_error_rate(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("Word Error Rate:")?;
    last(rest, &[", accuracy="], |rest| {
        let value = number(rest)?;
        rest.get(value.len()..)?.starts_with('%').then_some(value)
    })
}

fn dice(line: &str) -> Option<&str> {
    let space = char::is_whitespace;
    let rest = line.strip_prefix("Accuracy:")?.trim_start_matches(space);
    let rest = rest.strip_prefix("mean")?.trim_start_matches(space);
    number(rest.strip_prefix('=')?.trim_start_matches(space))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_grew_with_the_rounds() {
        use AccuracyForms::{Loose, LooseTop1, Strict};
        for (name, forms, line, expected) in [
            (
                "acc",
                Strict,
                "accuracy=76.030%, good=38015, total=50000\n",
                Some("76.030"),
            ),
            ("acc", Strict, "accuracy: 76.1\n", None),
            ("acc", LooseTop1, "accuracy: 76.1\n", Some("76.1")),
            ("acc", LooseTop1, "{\"accuracy\": 76.1}\n", Some("76.1")),
            ("acc", Loose, " accuracy=76.1", None),
            ("mAP", Strict, "mAP=37.4%\n", Some("37.4")),
            ("mAP", Strict, "x mAP=37.4%\n", None),
            ("mAP", Loose, "mAP=1 then {'Total': 0.54, ..\n", Some("0.54")),
            (
                "F1",
                Strict,
                "{\"exact_match\": 83.2, \"f1\": 90.31}\n",
                Some("90.31"),
            ),
            ("F1", Strict, "{'exact_match': 83.2, 'f1': 90.31, }\n", None),
            (
                "WER",
                Strict,
                "Word Error Rate: 0.07, accuracy=92.5%\n",
                Some("92.5"),
            ),
            (
                "DICE",
                Strict,
                "Accuracy: mean = 0.86170, kidney = 0.9\n",
                Some("0.86170"),
            ),
            (
                "ROUGE1",
                Strict,
                "{'rouge1': 42.9, 'rouge2': 20.1}\n",
                Some("42.9"),
            ),
            ("ROUGE1", Strict, "{'rouge1': '42.9'}\n", None),
            ("ROUGE1", Loose, "{'rouge1': '42.9'}\n", Some("42.9")),
            ("GEN_LEN", Loose, "{'gen_len': '4016878'}\n", None),
            ("ROUGE2", Loose, "{'rouge2': 1, 'rouge2': nan}\n", Some("1")),
            ("AUC", Strict, "AUC=80.31%, mlperf_bce=0.1\n", Some("80.31")),
            (
                "TOKENS_PER_SAMPLE",
                Loose,
                "{'tokens_per_sample': 294.4, 'x': 1}\n",
                Some("294.4"),
            ),
            ("exact_match", Loose, "{'exact_match': '81.3'}\n", None),
            (
                "F1_HIERARCHICAL",
                Loose,
                "{\"f1\": 0.79, \"level\": {\"f1\": 0.8}}\n",
                Some("0.8"),
            ),
            ("F1_HIERARCHICAL", Loose, "{\"f1\": 0.79\n", None),
            (
                "DLRM_NE",
                Loose,
                "rank 0 metric/lifetime_ne/rating:0.866\n",
                Some("0.866"),
            ),
            ("E2E_ACCURACY", Loose, "Accuracy: 34.1 %\n", Some("34.1")),
        ] {
            assert_eq!(metric(name, forms, line), expected, "{name} {forms:?} {line:?}");
        }
    }

    #[test]
    fn accuracy_hash_must_be_alone_on_its_line() {
        assert_eq!(hash("hash=ab_9\n"), Some("ab_9"));
        assert_eq!(hash("hash=ab 9\n"), None);
        assert_eq!(hash("total=50000hash=ab9\n"), None);
    }
}
