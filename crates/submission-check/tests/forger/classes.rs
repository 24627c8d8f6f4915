//! The classes of forgeries: one for each kind of statement.

mod accuracy;
mod copies;
mod figures;
mod power;
mod settings;
mod summaries;
mod tests;

use regatta_submission_check::check::Severity;

use crate::{
    logs::{Log, follow},
    random::Random,
    specimen::{Edits, Specimen},
};

pub(crate) struct Forgery {
    pub(crate) what: String,
    pub(crate) edits: Edits,
}

/// A kind of forgery, and the rules by which it may be found.
pub(crate) struct Class {
    pub(crate) name: &'static str,
    pub(crate) rules: &'static [&'static str],
    /// Contradictions are errors, improbable statements are warnings.
    pub(crate) severity: Severity,
    pub(crate) forge: fn(&Specimen, &mut Random) -> Option<Forgery>,
}

const fn class(
    name: &'static str,
    rules: &'static [&'static str],
    forge: fn(&Specimen, &mut Random) -> Option<Forgery>,
) -> Class {
    Class {
        name,
        rules,
        severity: Severity::Error,
        forge,
    }
}

pub(crate) const CLASSES: &[&Class] = &[
    &figures::SCALED_LATENCIES,
    &figures::SCALED_WITH_RATE,
    &figures::PERCENTILE_OUT_OF_ORDER,
    &figures::LATENCY_IN_ONE_LOG,
    &figures::MEAN,
    &figures::OFFLINE_RATE,
    &figures::OFFLINE_RATE_AND_TIME,
    &figures::SERVER_RATE,
    &figures::SERVER_TAIL,
    &figures::LATE_QUERIES,
    &figures::CONSTRAINTS,
    &figures::QUERY_COUNT,
    &figures::ESTIMATE,
    &figures::STOPPING_TEXT,
    &figures::REQUIREMENT,
    &figures::INVALID_REASON,
    &figures::TOKEN_RATE,
    &figures::TOKEN_LATENCY,
    &figures::NO_STAMPS,
    &figures::END_BEFORE_BEGIN,
    &figures::END_MOVED,
    &figures::STAMPS_MOVED,
    &settings::EFFECTIVE,
    &settings::REQUESTED,
    &settings::PERCENTILE,
    &settings::ONE_SAMPLE_A_QUERY,
    &settings::GENERATED_SAMPLES,
    &settings::GENERATED_QUERIES,
    &settings::SEEDS,
    &settings::LIBRARY,
    &settings::RECORD_REMOVED,
    &settings::RECORD_REPEATED,
    &settings::ERROR_RECORD,
    &summaries::FIGURE,
    &summaries::PARAMETER,
    &summaries::VERDICT,
    &summaries::STOPPING,
    &summaries::ERRORS,
    &copies::OTHER_SYSTEM,
    &copies::ACCURACY_RUN,
    &copies::WITH_OTHER_STAMPS,
    &copies::TEST_FROM_RESULT,
    &tests::NOTHING_COMPARED,
    &tests::COUNTER,
    &tests::SCORE,
    &tests::SEED,
    &accuracy::TOP1,
    &accuracy::SAMPLES,
    &accuracy::AVERAGE,
    &accuracy::HASH,
    &power::GAP,
    &power::SAMPLES,
];

const DETAIL: &str = "mlperf_log_detail.txt";
const SUMMARY: &str = "mlperf_log_summary.txt";

/// A performance log that `keep` keeps, with its path.
fn performance_log(
    specimen: &Specimen,
    random: &mut Random,
    keep: impl Fn(&Log) -> bool,
) -> Option<(String, Log)> {
    any_log(specimen, random, |log| {
        log.word("effective_test_mode") == Some("PerformanceOnly") && keep(log)
    })
}

/// A log of a result or a test that `keep` keeps, with its path.
fn any_log(specimen: &Specimen, random: &mut Random, keep: impl Fn(&Log) -> bool) -> Option<(String, Log)> {
    // A few attempts: reading all logs of a tree takes long.
    (0..8).find_map(|_| {
        let path = specimen.any_file(random, |path| {
            path.ends_with(DETAIL) && !path.contains("/ranging/")
        })?;
        let log = Log::of(&specimen.text(&path));
        keep(&log).then_some((path, log))
    })
}

fn scenario(expected: &'static str) -> impl Fn(&Log) -> bool {
    move |log| log.word("effective_scenario") == Some(expected)
}

/// Returns the changed log alone.
fn alone(what: impl Into<String>, (path, log): (String, Log)) -> Option<Forgery> {
    let what = format!("{} in {path}", what.into());
    Some(Forgery {
        what,
        edits: vec![(path, log.bytes())],
    })
}

/// Returns the changed log, and its summary with the same figures.
fn with_summary(what: impl Into<String>, specimen: &Specimen, (path, log): (String, Log)) -> Option<Forgery> {
    let summary = path.replace(DETAIL, SUMMARY);
    let text = follow(&specimen.text(&summary), &log);
    let what = format!("{} in {path} and its summary", what.into());
    Some(Forgery {
        what,
        edits: vec![(path, log.bytes()), (summary, text.into_bytes())],
    })
}

/// Returns a text file with a changed text; `None` where nothing changes.
fn changed(
    what: impl Into<String>,
    specimen: &Specimen,
    path: String,
    change: impl FnOnce(&str) -> String,
) -> Option<Forgery> {
    let text = specimen.text(&path);
    let new = change(&text);
    let what = format!("{} in {path}", what.into());
    (new != text).then(|| Forgery {
        what,
        edits: vec![(path, new.into_bytes())],
    })
}
