//! Forged summaries with unchanged detail logs.

use super::{Class, DETAIL, SUMMARY, changed, class};
use crate::{logs::Log, random::Random, specimen::Specimen};

const AGREEMENT: &[&str] = &["agreement"];

fn any_summary(specimen: &Specimen, random: &mut Random) -> Option<String> {
    (0..8).find_map(|_| {
        let path = specimen.any_file(random, |path| path.ends_with(SUMMARY))?;
        specimen.text(&path).contains("Result is").then_some(path)
    })
}

/// Changes the number in one of a section's lines.
fn number(
    specimen: &Specimen,
    random: &mut Random,
    expected: impl Fn(&str) -> bool,
) -> Option<super::Forgery> {
    let path = any_summary(specimen, random)?;
    let text = specimen.text(&path);
    let value = |line: &str| line.split_once(':')?.1.trim().parse::<f64>().ok();
    let lines: Vec<_> = text
        .lines()
        .filter(|line| value(line).is_some() && expected(line))
        .collect();
    if lines.is_empty() {
        return None;
    }
    let line = (*random.pick(&lines)).to_owned();
    let (label, old) = line.split_once(':')?;
    let old: f64 = old.trim().parse().ok()?;
    let new = match old == 0.0 {
        true => 3.0,
        false => (old * random.between(1.2, 2.0)).ceil(),
    };
    changed(format!("`{line}` as {new}"), specimen, path, |text| {
        text.replacen(&line, &format!("{label}: {new}"), 1)
    })
}

pub(super) const FIGURE: Class = class("a figure of the summary", AGREEMENT, |specimen, random| {
    number(specimen, random, |line| {
        line.contains("latency (ns)") || line.contains("per second") || line.contains("QPS")
    })
});

pub(super) const PARAMETER: Class = class("a setting of the summary", AGREEMENT, |specimen, random| {
    number(specimen, random, |line| {
        [
            "seed",
            "count",
            "duration",
            "samples_per_query",
            "target",
            "issue",
        ]
        .iter()
        .any(|part| line.contains(part))
            && !line.contains("latency (ns)")
    })
});

pub(super) const VERDICT: Class = class(
    "the summary's verdict and requirements",
    AGREEMENT,
    |specimen, random| {
        let path = any_summary(specimen, random)?;
        let words = [
            ("VALID", "INVALID"),
            ("Min duration satisfied : Yes", "Min duration satisfied : NO"),
            ("Min queries satisfied : Yes", "Min queries satisfied : NO"),
        ];
        let (from, to) = random.pick(&words);
        changed(*to, specimen, path, |text| text.replacen(from, to, 1))
    },
);

pub(super) const STOPPING: Class = class("the summary's early stopping", AGREEMENT, |specimen, random| {
    let path = any_summary(specimen, random)?;
    changed("one more discarded", specimen, path, |text| {
        text.replacen("Would discard ", "Would discard 1", 1)
    })
});

pub(super) const ERRORS: Class = class(
    "an error that the detail log does not have",
    AGREEMENT,
    |specimen, random| {
        let path = specimen.any_file(random, |path| {
            path.ends_with(SUMMARY) && !path.contains("ranging")
        })?;
        Log::of(&specimen.text(&path.replace(SUMMARY, DETAIL))).get("sut_name")?;
        changed("an error", specimen, path, |text| {
            text.replacen("No errors encountered", "1 ERROR encountered", 1)
        })
    },
);
