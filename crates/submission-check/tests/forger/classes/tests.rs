//! Forged tests.

use super::{Class, Forgery, alone, any_log, changed, class};
use crate::{random::Random, specimen::Specimen};

const RESPONSES: &[&str] = &["test-accuracy"];

fn counted(
    specimen: &Specimen,
    random: &mut Random,
    label: &str,
    new: impl Fn(u64, &mut Random) -> u64,
) -> Option<Forgery> {
    let path = specimen.any_file(random, |path| {
        path.contains("TEST01") && path.ends_with("verify_accuracy.txt")
    })?;
    let text = specimen.text(&path);
    let line = text.lines().find(|line| line.starts_with(label))?.to_owned();
    let old: u64 = line.split_once('=')?.1.trim().parse().ok()?;
    let value = new(old, random);
    (value != old).then_some(())?;
    changed(format!("{label} {value}, not {old}"), specimen, path, |text| {
        text.replace(&line, &format!("{label} = {value}"))
    })
}

pub(super) const NOTHING_COMPARED: Class = class(
    "TEST PASS with nothing compared",
    RESPONSES,
    |specimen, random| counted(specimen, random, "num_perf_log_qsl_idx_match", |_, _| 0),
);

pub(super) const COUNTER: Class = class("another counter of TEST01", RESPONSES, |specimen, random| {
    let labels = [
        "num_acc_log_entries",
        "num_acc_log_duplicate_keys",
        "num_perf_log_entries",
        "num_perf_log_data_mismatch",
        "num_missing_qsl_idxs",
    ];
    let label = *random.pick(&labels);
    counted(specimen, random, label, |old, random| match random.coin() {
        true => old * 2 + 1,
        false => old / 2,
    })
});

pub(super) const SCORE: Class = class(
    "another score of a test",
    &["test-performance"],
    |specimen, random| {
        let path = specimen.any_file(random, |path| path.ends_with("verify_performance.txt"))?;
        let text = specimen.text(&path);
        let lines: Vec<_> = text.lines().filter(|line| line.contains("score =")).collect();
        let line = (*random.pick(&lines)).to_owned();
        let (label, old) = line.split_once('=')?;
        let new = old.trim().parse::<f64>().ok()? * random.between(1.01, 1.09);
        changed(format!("{label}{new}"), specimen, path, |text| {
            text.replace(&line, &format!("{label}= {new}"))
        })
    },
);

pub(super) const SEED: Class = class("TEST01 by another seed", &["test-setting"], |specimen, random| {
    let (path, mut log) = any_log(specimen, random, |log| {
        log.get("effective_accuracy_log_rng_seed") == Some("720381539243781796")
    })?;
    for start in ["requested", "effective"] {
        log.set(&format!("{start}_accuracy_log_rng_seed"), "1");
    }
    alone("another seed", (path, log))
});
