//! Plans audits: selects the runs to audit and drafts the audit's own run. That run repeats the performance run's spec under the round's
//! `audit.config`.
//!
//! The order of steps is enforced here. Both runs must be usable before an audit, and an accuracy log must not be truncated before it.

use std::{fs, io, path::PathBuf};

use regatta_catalogue::round::Round;
use regatta_fsutil::regular_file::{self, MAX_DOCUMENT};
use regatta_loadgen_conf::{Conf, ConfError, ConfKind, TestSettings};
use regatta_mllog::read::file_name;
use regatta_types::{
    DeviceId, ErrorKind, Mode, RunId, Scenario,
    benchmark::Benchmark,
    documents::{AuditOf, Document as _, DocumentError, LoadgenChoice, RunSpec},
};

use regatta_lab_store::{self as store, RunDraft, RunRow, Store, StoreError, workspace::Workspace};

/// An error of planning an audit.
#[derive(Debug, thiserror::Error)]
pub enum AuditPlanError {
    /// The device has no valid performance run.
    #[error("there is no valid performance run of {benchmark} {scenario} on that device")]
    NoPerformanceRun { benchmark: String, scenario: Scenario },
    /// The device has no accuracy run to compare responses with.
    #[error(
        "there is no complete accuracy run of {benchmark} {scenario} with the settings of performance run {performance}"
    )]
    NoAccuracyRun {
        benchmark: String,
        scenario: Scenario,
        /// The run to audit.
        performance: RunId,
    },
    /// A run to audit was removed.
    #[error("run {0}, which the audit needs, was removed")]
    Removed(RunId),
    /// The round of the audited run is no longer there.
    #[error("unknown round {0}")]
    NoRound(String),
    /// The round does not have the audit.
    #[error("round {round} has no {test}; it has {known}")]
    NotInRound {
        /// The requested audit.
        test: String,
        round: String,
        /// The audits of the round.
        known: String,
    },
    /// The accuracy log differs from the one that the device delivered.
    #[error("{} differs from the delivered file: {found} of {delivered} bytes", .path.display())]
    Altered {
        /// The accuracy log.
        path: PathBuf,
        /// Its current length in bytes.
        found: u64,
        /// Its delivered length in bytes.
        delivered: u64,
    },
    /// A run's spec or log cannot be read.
    #[error("cannot read {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A run's spec cannot be parsed.
    #[error("the spec of run {run} cannot be used")]
    Spec {
        run: RunId,
        /// The cause.
        #[source]
        source: DocumentError,
    },
    /// The round's `audit.config` cannot be parsed.
    #[error("the round's audit.config cannot be used")]
    Config(#[from] ConfError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AuditPlanError {
    /// Returns who has to act.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NoPerformanceRun { .. } | Self::NoAccuracyRun { .. } | Self::NotInRound { .. } => {
                ErrorKind::Usage
            }
            _ => ErrorKind::Internal,
        }
    }
}

/// The two runs that audits are compared with.
#[derive(Debug, Clone)]
pub struct Audited {
    /// The performance run, done and VALID.
    pub performance: RunRow,
    /// The accuracy run with the same settings and a complete log.
    pub accuracy: RunRow,
}

/// Returns the newest usable runs of a benchmark in a scenario on a device. They are a performance run and an accuracy run with the same
/// benchmark file, round, engine, settings and LoadGen.
///
/// # Errors
/// Returns an error when one of them is missing, or when the accuracy log does not have its delivered length.
pub fn find(
    workspace: &Workspace,
    store: &Store,
    device: &DeviceId,
    benchmark: &Benchmark,
    scenario: Scenario,
) -> Result<Audited, AuditPlanError> {
    let rows = store.runs().all()?;
    let performance = measurements(&rows, device, &benchmark.name, scenario)
        .find(|row| matches!(row.mode, Mode::PerformanceOnly | Mode::SubmissionRun))
        .ok_or_else(|| AuditPlanError::NoPerformanceRun {
            benchmark: benchmark.name.clone(),
            scenario,
        })?;
    with_accuracy(workspace, store, &rows, performance)
}

/// Returns a performance run with the newest usable accuracy run of the same device and settings.
///
/// # Errors
/// Returns an error when the run was removed or cannot be used, when there is no such accuracy run, or when its log does not have its delivered
/// length.
pub fn of_performance(workspace: &Workspace, store: &Store, run: RunId) -> Result<Audited, AuditPlanError> {
    let rows = store.runs().all()?;
    let named = rows
        .iter()
        .find(|row| row.id == run)
        .ok_or(AuditPlanError::Removed(run))?;
    let performance = measurements(&rows, &named.device, &named.benchmark, named.scenario)
        .find(|row| row.id == run && matches!(row.mode, Mode::PerformanceOnly | Mode::SubmissionRun))
        .ok_or_else(|| AuditPlanError::NoPerformanceRun {
            benchmark: named.benchmark.clone(),
            scenario: named.scenario,
        })?;
    with_accuracy(workspace, store, &rows, performance)
}

/// Returns the usable measurements of a benchmark in a scenario on a device, newest first.
fn measurements<'a>(
    rows: &'a [RunRow],
    device: &'a DeviceId,
    benchmark: &'a str,
    scenario: Scenario,
) -> impl Iterator<Item = &'a RunRow> {
    rows.iter().filter(move |row| {
        row.device == *device
            && row.benchmark == benchmark
            && row.scenario == scenario
            && row.draft.spec.audit.is_none()
            && row.draft.spec.task.is_measurement()
            && row.is_usable()
    })
}

fn with_accuracy(
    workspace: &Workspace,
    store: &Store,
    rows: &[RunRow],
    performance: &RunRow,
) -> Result<Audited, AuditPlanError> {
    let (benchmark, scenario) = (&performance.benchmark, performance.scenario);
    let accuracy = measurements(rows, &performance.device, benchmark, scenario)
        .find(|row| {
            matches!(row.mode, Mode::AccuracyOnly | Mode::SubmissionRun)
                && have_same_settings(row, performance)
        })
        .ok_or_else(|| AuditPlanError::NoAccuracyRun {
            benchmark: benchmark.clone(),
            scenario,
            performance: performance.id,
        })?;
    expect_whole(workspace, store, accuracy)?;
    Ok(Audited {
        performance: performance.clone(),
        accuracy: accuracy.clone(),
    })
}

/// Returns these two runs, if an audit may compare with them.
///
/// # Errors
/// Returns an error when one of them was removed, when their settings differ, or when the accuracy log does not have its delivered length.
pub fn of_runs(
    workspace: &Workspace,
    store: &Store,
    performance: RunId,
    accuracy: RunId,
) -> Result<Audited, AuditPlanError> {
    let find = |run| store.runs().get(run)?.ok_or(AuditPlanError::Removed(run));
    let (performance, accuracy) = (find(performance)?, find(accuracy)?);
    if !have_same_settings(&performance, &accuracy) {
        return Err(AuditPlanError::NoAccuracyRun {
            benchmark: performance.benchmark.clone(),
            scenario: performance.scenario,
            performance: performance.id,
        });
    }
    expect_whole(workspace, store, &accuracy)?;
    Ok(Audited {
        performance,
        accuracy,
    })
}

/// Returns whether two runs have the same benchmark, round, engine, settings and LoadGen.
pub fn have_same_settings(one: &RunRow, other: &RunRow) -> bool {
    let (one, other) = (&one.draft.spec, &other.draft.spec);
    one.benchmark == other.benchmark
        && one.round == other.round
        && one.engine == other.engine
        && one.loadgen == other.loadgen
}

/// Checks that the accuracy log has its delivered length, because audits come before truncation. Its hash is checked when the audit is
/// verified.
fn expect_whole(workspace: &Workspace, store: &Store, accuracy: &RunRow) -> Result<(), AuditPlanError> {
    let path = workspace.run(accuracy.id).files().join(file_name::ACCURACY);
    let streams = store.streams().of_run(accuracy.id)?;
    let delivered = streams
        .iter()
        .find(|stream| stream.name.as_str() == file_name::ACCURACY)
        .map_or(0, |stream| stream.committed);
    let found = fs::metadata(&path).map(|metadata| metadata.len());
    match found {
        Ok(found) if found == delivered => Ok(()),
        Ok(found) => Err(AuditPlanError::Altered {
            path,
            found,
            delivered,
        }),
        Err(source) => Err(AuditPlanError::Io { path, source }),
    }
}

/// Drafts the audits `tests` of these runs. An empty list means all audits that the round requires for the benchmark.
///
/// # Errors
/// Returns an error when the round does not have the audit, or the performance run's spec cannot be read.
pub fn drafts(
    workspace: &Workspace,
    round: &Round,
    audited: &Audited,
    tests: &[String],
) -> Result<Vec<RunDraft>, AuditPlanError> {
    let path = workspace.run(audited.performance.id).spec();
    let bytes =
        regular_file::read(&path, MAX_DOCUMENT).map_err(|source| AuditPlanError::Io { path, source })?;
    let spec = RunSpec::from_json(&bytes).map_err(|source| AuditPlanError::Spec {
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

/// Returns the performance run's spec under the audit's configuration. The rates are those of the performance run.
fn draft(
    round: &Round,
    test: &str,
    performance: &RunSpec,
    accuracy: RunId,
) -> Result<RunDraft, AuditPlanError> {
    let mut audits = round.audits.iter();
    let named = audits.find(|(name, _)| name.eq_ignore_ascii_case(test));
    let (test, rule) = named.ok_or_else(|| AuditPlanError::NotInRound {
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
    // Regatta's LoadGen follows the current official one, which takes seeds from mlperf.conf only. The LoadGen of the rounds with TEST05
    // also took them from audit.config.
    if rule.other_seeds && performance.loadgen == LoadgenChoice::Native {
        spec.conf.mlperf_conf = with_other_seeds(round, &spec.conf.mlperf_conf);
    }
    Ok(RunDraft {
        spec,
        guesses: Default::default(),
        user_settings: Default::default(),
        is_conf_fixed: true,
        forced: false,
        limit_s: None,
    })
}

/// Returns `mlperf.conf` with its seeds replaced by the round's TEST05 seeds.
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
