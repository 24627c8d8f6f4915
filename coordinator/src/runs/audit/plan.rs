//! Which runs an audit is held against, and the draft of the audit's own run: the performance run once more, to the
//! letter of its spec, under the round's `audit.config`.
//!
//! The order of steps is kept here: there is nothing to audit before both runs are good, and nothing can be audited once an
//! accuracy log has been truncated.

use std::{fs, io, path::PathBuf};

use regatta_conf::{Conf, ConfError, ConfKind, TestSettings};
use regatta_config::round::Round;
use regatta_fsutil::regular_file::{self, LARGEST_DOCUMENT};
use regatta_mllog::read::file_name;
use regatta_types::{
    DeviceId, Mode, RunId, Scenario,
    benchmark::Benchmark,
    documents::{AuditOf, Document as _, DocumentError, LoadgenChoice, RunSpec},
};

use crate::{
    store::{self, RunDraft, RunRow, Store, StoreError},
    workspace::Workspace,
};

/// An audit that cannot be asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    /// There is nothing to audit.
    #[error("there is no valid performance run of {benchmark} {scenario} on that device")]
    NoPerformanceRun {
        /// Of which benchmark.
        benchmark: String,
        /// In which scenario.
        scenario: Scenario,
    },
    /// There are no responses to compare with.
    #[error(
        "there is no complete accuracy run of {benchmark} {scenario} with the settings of performance run {performance}"
    )]
    NoAccuracyRun {
        /// Of which benchmark.
        benchmark: String,
        /// In which scenario.
        scenario: Scenario,
        /// The run that was to be audited.
        performance: RunId,
    },
    /// The round has no such audit.
    #[error("round {round} has no {test}; it has {known}")]
    NotInRound {
        /// The audit.
        test: String,
        /// The round.
        round: String,
        /// Its audits.
        known: String,
    },
    /// The responses that would be compared are no longer what the device delivered.
    #[error("{} is not what the device delivered: {found} bytes of {delivered}", .path.display())]
    Altered {
        /// The accuracy log.
        path: PathBuf,
        /// Its length now.
        found: u64,
        /// Its length as delivered.
        delivered: u64,
    },
    /// A run's spec or log cannot be read.
    #[error("cannot read {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A run's spec does not read.
    #[error("the spec of run {run} cannot be used")]
    Spec {
        /// The run.
        run: RunId,
        /// Why.
        #[source]
        source: DocumentError,
    },
    /// The round's `audit.config` does not read.
    #[error("the round's audit.config cannot be used")]
    Config(#[from] ConfError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The runs that audits are held against.
#[derive(Debug, Clone)]
pub(crate) struct Audited {
    /// The performance run, done and VALID.
    pub(crate) performance: RunRow,
    /// The accuracy run of the same settings, its log whole.
    pub(crate) accuracy: RunRow,
}

/// The newest good runs of a benchmark in a scenario on a device: a performance run, and an accuracy run with the same
/// benchmark file, round, engine, settings and LoadGen.
///
/// # Errors
/// When one of them is missing, or the accuracy log is no longer as delivered.
pub(crate) fn find(
    workspace: &Workspace,
    store: &Store,
    device: &DeviceId,
    benchmark: &Benchmark,
    scenario: Scenario,
) -> Result<Audited, PlanError> {
    let rows = store.runs()?;
    let mut own = rows.iter().filter(|row| {
        row.device == *device
            && row.benchmark == benchmark.name
            && row.scenario == scenario
            && row.draft.spec.audit.is_none()
            && row.is_usable()
    });
    let performance = own
        .clone()
        .find(|row| matches!(row.mode, Mode::PerformanceOnly | Mode::SubmissionRun))
        .ok_or_else(|| PlanError::NoPerformanceRun {
            benchmark: benchmark.name.clone(),
            scenario,
        })?;
    let accuracy = own
        .find(|row| matches!(row.mode, Mode::AccuracyOnly | Mode::SubmissionRun) && alike(row, performance))
        .ok_or_else(|| PlanError::NoAccuracyRun {
            benchmark: benchmark.name.clone(),
            scenario,
            performance: performance.id,
        })?;
    expect_whole(workspace, store, accuracy)?;
    Ok(Audited {
        performance: performance.clone(),
        accuracy: accuracy.clone(),
    })
}

/// Whether two runs were asked for with the same benchmark, round, engine, settings and LoadGen.
fn alike(one: &RunRow, other: &RunRow) -> bool {
    let (one, other) = (&one.draft.spec, &other.draft.spec);
    one.benchmark == other.benchmark
        && one.round == other.round
        && one.engine == other.engine
        && one.loadgen == other.loadgen
}

/// Audits come before truncation: the log has the length that was delivered. Its hash is held against the device's when
/// the audit is verified.
fn expect_whole(workspace: &Workspace, store: &Store, accuracy: &RunRow) -> Result<(), PlanError> {
    let path = workspace.run(accuracy.id).files().join(file_name::ACCURACY);
    let streams = store.streams(accuracy.id)?;
    let delivered = streams
        .iter()
        .find(|stream| stream.name.as_str() == file_name::ACCURACY)
        .map_or(0, |stream| stream.committed);
    let found = fs::metadata(&path).map(|metadata| metadata.len());
    match found {
        Ok(found) if found == delivered => Ok(()),
        Ok(found) => Err(PlanError::Altered {
            path,
            found,
            delivered,
        }),
        Err(source) => Err(PlanError::Io { path, source }),
    }
}

/// The drafts of audits of these runs; without names, of all that the round asks of the benchmark.
///
/// # Errors
/// When the round lacks an audit, or the performance run's spec cannot be read.
pub(crate) fn drafts(
    workspace: &Workspace,
    round: &Round,
    audited: &Audited,
    tests: &[String],
) -> Result<Vec<RunDraft>, PlanError> {
    let path = workspace.run(audited.performance.id).spec();
    let bytes =
        regular_file::read(&path, LARGEST_DOCUMENT).map_err(|source| PlanError::Io { path, source })?;
    let spec = RunSpec::from_json(&bytes).map_err(|source| PlanError::Spec {
        run: audited.performance.id,
        source,
    })?;
    let requested: Vec<&str> = match tests {
        [] => round.audits_of(&spec.benchmark),
        tests => tests.iter().map(String::as_str).collect(),
    };
    requested
        .into_iter()
        .map(|test| draft(round, test, &spec, audited.accuracy.id))
        .collect()
}

/// The performance run's spec under the audit's configuration. Rates are those of the performance run: an audit is the
/// same run.
fn draft(round: &Round, test: &str, performance: &RunSpec, accuracy: RunId) -> Result<RunDraft, PlanError> {
    let mut audits = round.audits.iter();
    let named = audits.find(|(name, _)| name.eq_ignore_ascii_case(test));
    let (test, rule) = named.ok_or_else(|| PlanError::NotInRound {
        test: test.to_owned(),
        round: round.name.clone(),
        known: round.audits.keys().cloned().collect::<Vec<_>>().join(", "),
    })?;
    let config = rule.config_for(&performance.benchmark.loadgen_model);
    let mut settings = TestSettings::new(performance.scenario, Mode::PerformanceOnly);
    settings.apply(&Conf::parse("audit.config", &config)?, ConfKind::Audit, "*")?;

    let mut spec = performance.clone();
    spec.run = RunId::now();
    spec.created = store::now();
    spec.mode = settings.mode;
    spec.conf.audit_config = Some(config);
    spec.audit = Some(AuditOf {
        test: test.clone(),
        performance: performance.run,
        accuracy: Some(accuracy),
    });
    // Our LoadGen is as today's official one, which takes seeds from mlperf.conf alone; those of the rounds with TEST05
    // took them from audit.config too.
    if rule.other_seeds && performance.loadgen == LoadgenChoice::Native {
        spec.conf.mlperf_conf = with_other_seeds(round, &spec.conf.mlperf_conf);
    }
    Ok(RunDraft {
        spec,
        guesses: Default::default(),
        user_settings: Default::default(),
    })
}

/// `mlperf.conf` with the round's TEST05 seeds in the place of its own.
fn with_other_seeds(round: &Round, conf: &str) -> String {
    let Some(seeds) = round.test05_seeds() else {
        return conf.to_owned();
    };
    let mut text = String::with_capacity(conf.len());
    for line in conf.split_inclusive('\n') {
        let seed = match line.split(" = ").next() {
            Some("*.*.qsl_rng_seed") => seeds.qsl,
            Some("*.*.sample_index_rng_seed") => seeds.sample_index,
            Some("*.*.schedule_rng_seed") => seeds.schedule,
            _ => {
                text.push_str(line);
                continue;
            }
        };
        let key = line.split(" = ").next().unwrap_or_default();
        text.push_str(&format!("{key} = {seed}\n"));
    }
    text
}
