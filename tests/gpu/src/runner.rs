//! Runs a check in a separate process, within its time limit.

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::Context as _;

use crate::{
    check::{Check, Layer},
    fakes::Fakes,
    outcome::{Kit, Outcome},
    subprocess::Subprocess,
};

/// The outcome of a check, and the time that it took.
pub(crate) struct Finished {
    pub(crate) outcome: Outcome,
    pub(crate) seconds: f64,
}

pub(crate) fn run(check: &Check, kit: &Kit, fakes: Option<&Fakes>, work: &Path) -> anyhow::Result<Finished> {
    if check.layer == Layer::TensorRt && kit.tensorrt.is_none() {
        return Ok(Finished {
            outcome: Outcome::skipped("needs --tensorrt DIR"),
            seconds: 0.0,
        });
    }
    let [kit_file, outcome_file, log] =
        ["kit.json", "outcome.json", "log.txt"].map(|name| work.join(format!("{}-{name}", check.key)));
    fs::write(&kit_file, serde_json::to_vec(kit)?)?;
    let mut command = Command::new(&kit.program);
    command
        .args(["check", check.key])
        .arg("--kit")
        .arg(&kit_file)
        .arg("--outcome")
        .arg(&outcome_file)
        .stdin(Stdio::null())
        .stdout(File::create(&log)?)
        .stderr(File::options().append(true).open(&log)?);
    if let Some(fakes) = fakes {
        fakes.apply(&mut command);
    }
    let begin = Instant::now();
    let mut process = Subprocess::start(&mut command).context("the check's process cannot be started")?;
    let end = process.wait(check.limit)?;
    let seconds = begin.elapsed().as_secs_f64();
    let outcome = match end.failure(check.limit) {
        Some(failure) => Outcome::failed(format!("the check {failure}{}", last_line(&log))),
        None => serde_json::from_slice(&fs::read(&outcome_file).unwrap_or_default())
            .unwrap_or_else(|_| Outcome::failed("the check ended without an outcome")),
    };
    Ok(Finished { outcome, seconds })
}

/// Returns the last line that a process printed, prefixed with a colon.
fn last_line(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .map(|line| format!(": {line}"))
        .unwrap_or_default()
}
