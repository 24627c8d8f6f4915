//! The texts that staging writes itself: the measurement of a result, and the labels of a rehearsal.
//!
//! Every fact comes from a run. The texts contain no time and no local path, so that the same runs give the same bytes.

use std::fmt::Write as _;

use regatta_catalogue::round::Round;
use regatta_types::documents::{AccuracyResult, LoadgenChoice, RunSpec};

use super::{places::Of, run::Run};

/// Returns the README of a result.
pub(super) fn readme(
    of: Of<'_>,
    round: &Round,
    performance: &Run,
    accuracy: &Run,
    rehearsal: bool,
) -> String {
    let spec = &performance.spec;
    let mut text = format!("# {}, {}, on {}\n\n", spec.benchmark.name, of.scenario, of.system);
    // Writing to a String cannot fail, here and below.
    if rehearsal {
        text.push_str("**REHEARSAL: not a result, not to be submitted.**\n\n");
        for reason in performance.not_submittable(round) {
            let _ = writeln!(text, "* {reason}");
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "{}. Measured by the rules of MLPerf Inference {} with Regatta ({}).\n",
        spec.benchmark.title, round.name, performance.evidence.agent
    );
    let _ = writeln!(text, "| | |\n|---|---|");
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "| {name} | {value} |");
    };
    if let Some(attempt) = performance.attempt() {
        row("engine", &attempt.engine);
    }
    if let Some(loadgen) = performance.loadgen() {
        let words = format!(
            "{} {}, revision {}, `mlperf.conf` with SHA-256 {}",
            loadgen.implementation, loadgen.version, loadgen.revision, loadgen.mlperf_conf_sha256
        );
        row("LoadGen", &words);
    }
    let model = &spec.benchmark.model;
    let hash = model.sha256.as_deref().map(|hash| format!(", SHA-256 {hash}"));
    row("model", &format!("`{}`{}", model.file, hash.unwrap_or_default()));
    let data = &spec.benchmark.dataset;
    row(
        "data",
        &format!(
            "`{}`, {} samples, {} loaded at once",
            data.dir, data.total_samples, data.performance_samples
        ),
    );
    row("performance run", &performance.id().to_string());
    row("accuracy run", &accuracy.id().to_string());
    text.push_str("\n## To run it again\n\nWith the settings of `user.conf` next to this file:\n\n```sh\n");
    for run in [accuracy, performance] {
        let _ = writeln!(text, "{}", command(run));
    }
    text.push_str("```\n");
    text
}

/// Returns the command that repeats a run.
fn command(run: &Run) -> String {
    let RunSpec {
        benchmark,
        scenario,
        mode,
        engine,
        round,
        ..
    } = &run.spec;
    let loadgen = match (&run.spec.loadgen, run.loadgen()) {
        // The request named no revision; the evidence has the one that ran.
        (LoadgenChoice::Official { revision: None }, Some(ran)) => format!("official:{}", ran.revision),
        (requested, _) => requested.to_string(),
    };
    let mut text = format!(
        "regatta run --device {} --benchmark {} --scenario {scenario} --mode {mode} --round {round} --engine {} \
         --loadgen {loadgen}",
        run.record.device_name, benchmark.name, engine.kind
    );
    for assignment in engine.settings.assignments() {
        let _ = write!(text, " --set {assignment}");
    }
    match &run.spec.state {
        None => {}
        // Custom state values have no command-line option; a plan sets them.
        Some(state) if state.name == "own" => drop(write!(text, "    # in the state {}", state.words())),
        Some(state) => drop(write!(text, " --state {}    # {}", state.name, state.words())),
    }
    text
}

/// Returns the text of `REHEARSAL.md` in the root of a rehearsal.
pub(super) fn rehearsal(runs: &[&Run], round: &Round) -> String {
    let mut reasons: Vec<String> = runs.iter().flat_map(|run| run.not_submittable(round)).collect();
    reasons.sort();
    reasons.dedup();
    let mut text = String::from(
        "# REHEARSAL\n\nThis tree has the form of an MLPerf submission and is none: it must not be submitted in any \
         division, and nothing in it is an MLPerf result. Submitter and systems carry REHEARSAL in their names.\n",
    );
    if !reasons.is_empty() {
        text.push_str("\nWhat keeps its runs from being measurements:\n\n");
        for reason in reasons {
            let _ = writeln!(text, "* {reason}");
        }
    }
    text
}

/// Returns a rehearsal's `accuracy.txt` if the reference script was not run.
///
/// It has the reference script's form for the metric, and says that Regatta computed the value.
pub(super) fn own_accuracy(found: &AccuracyResult) -> String {
    format!(
        "REHEARSAL: computed by Regatta, not the reference script's output\n{}\n",
        found.official_line()
    )
}

/// The calibration document of a rehearsal.
pub(super) const NO_CALIBRATION: &str =
    "# REHEARSAL\n\nCalibration is not described: this tree is not submitted.\n";

/// The README in the code directory of a rehearsal.
pub(super) const NO_CODE: &str = "# REHEARSAL\n\nNo code is enclosed: this tree is not submitted.\n";
