//! The official checkers of a round: what each one checks, what it only logs, and how it differs from the others.
//!
//! These are facts about other programs, needed to predict their verdicts. The rules themselves are in other modules.

use serde::{Deserialize, Serialize};

/// An official checker at one revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checker {
    /// The tag or commit, as users name it.
    pub revision: String,
    /// The checker's family.
    pub kind: CheckerKind,
    /// Checks that it does not make.
    #[serde(default)]
    pub absent: Vec<OfficialCheck>,
    /// Checks whose failures it logs but accepts.
    #[serde(default)]
    pub logged: Vec<OfficialCheck>,
    /// Further differences from related checkers.
    #[serde(default)]
    pub traits: Vec<Trait>,
    /// Parts of `[submission]` in which the checker's own tables differ from the round's. They replace the round's values key by key;
    /// `false` removes a key.
    #[serde(default)]
    pub instead: toml::Table,
}

/// The two families of official checkers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckerKind {
    /// A single file, `submission_checker.py`, up to v5.1: walks the tree and checks directories.
    Monolith,
    /// The package `submission_checker/` since v6.0: checks scenario by scenario.
    Package,
}

/// A check that only some revisions make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OfficialCheck {
    /// Files in the root other than `.md` and `.pdf`.
    RootFiles,
    /// Files in a division's directory.
    DivisionFiles,
    /// Symbolic links.
    Links,
    /// Files above the size limit.
    LargeFiles,
    /// Names that begin with a dot.
    DotNames,
    /// Names with a space.
    Spaces,
    /// `__pycache__` directories.
    Pycache,
    EmptyDirectories,
    /// Use of the open division's `model_mapping.json`.
    ModelMapping,
    /// Systems and measurements without results.
    SystemsWithoutResults,
    /// The calibration document.
    Calibration,
    /// Contents of the measurement directory.
    Measurements,
    /// Empty files in the measurement directory.
    EmptyMeasurementFiles,
    /// Power analyzer files in the measurement directory or above it.
    PowerMeasurementFiles,
    /// The exact files of the accuracy directory.
    AccuracyFileSet,
    /// The exact files of `run_1`.
    PerformanceFileSet,
    /// The round's seeds.
    Seeds,
    /// The minimum number of queries.
    MinQueries,
    /// The number of samples of the Offline query.
    OfflineSamples,
    /// The minimum duration.
    MinDuration,
    /// The verdict of early stopping.
    EarlyStopping,
    /// The Server latency bound.
    Latency,
    /// Equal issue of samples.
    EqualIssue,
    /// The accuracy run's sample count.
    DatasetSize,
    /// Images of the accuracy run.
    ExtraAccuracyFiles,
    /// A result in the ranging run.
    Ranging,
    /// LoadGen's `VALID`.
    ResultValidity,
    /// LoadGen's errors in performance and test runs.
    LoadgenErrorsPerformance,
    /// LoadGen's errors in accuracy runs.
    LoadgenErrorsAccuracy,
    /// The Power working group's checker.
    PowerChecker,
}

/// A difference between one checker and related ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trait {
    /// Rejects every symbolic link, not only broken ones.
    AnyLink,
    /// Reads only the first metric; its last value before the hash counts.
    OneAccuracyMetric,
    /// The CSV has only the first metric's number.
    PlainAccuracy,
    /// Reports energy per query in joules, not millijoules.
    PowerInJoules,
    /// Reads every line of the power log, not only lines that begin with `Time`.
    PowerLogEveryLine,
    /// Includes power samples of 0 W and less in the average.
    PowerLogZeros,
    /// The power checker reads the times of PTDaemon's log as local time, not UTC.
    PowerLogInLocalTime,
    /// Accepts power analyzer files anywhere below `measurements/`.
    PowerFilesAnywhere,
    /// Averages the ranging run's power too, and requires samples in it.
    RangingPower,
    /// Requires a compliance directory even for benchmarks without tests.
    ComplianceDirectoryAlways,
    /// Requires a compliance directory even for benchmarks without tests, except when the result directory's name contains `gptj`.
    ComplianceDirectoryButGptj,
    /// Looks for the files and verdicts of compliance tests only, and accepts results without them.
    ComplianceLogged,
    /// The CSV has the number of accelerators without quotes.
    BareAcceleratorCount,
    /// The CSV spells a column `compilance`.
    MisspeltCompliance,
    /// Looks for equal issue in the conf files beside the measurements.
    EqualIssueInConf,
    /// Does not check the number of queries of benchmarks that require equal issue.
    EqualIssueFreesQueries,
    /// Recognises only one spelling of Interactive, and does not recognise it in the power check.
    InteractiveHalfKnown,
    /// The CSV has no columns for the power supplies' capacity and private names.
    NoDesignColumns,
    /// Does not require equal issue in the open division.
    EqualIssueNotInOpen,
    /// Uses the general TEST01 limit for every metric.
    MetricDeltaIgnored,
    /// Takes `num_errors` in the log as the number of error lines.
    CountsNumErrors,
    /// Ends with a traceback when an accuracy log has errors.
    CrashesOnAccuracyErrors,
    /// Accuracy without any metric fails in the open division too.
    EmptyAccuracyFailsOpen,
    /// `system_power_only` suppresses the performance row.
    PowerOnlySystems,
    /// Bounds of token latencies apply in every scenario except Offline.
    TokenLimitsInEveryScenario,
    /// Token latencies within bounds make a run valid, regardless of LoadGen's verdict.
    TokenLimitsDecide,
    /// Looks up a benchmark's own units by the directory's name.
    UnitsByDirectory,
    /// The summary has only the number of items.
    ShortSummary,
    /// The CSV has the power supplies' capacity, from the system description or a file beside it.
    NameplatePower,
    /// The CSV has a column for the weights' types.
    WeightDataTypes,
}

impl Checker {
    /// Whether the checker makes this check.
    #[must_use]
    pub fn looks_at(&self, check: OfficialCheck) -> bool {
        !self.absent.contains(&check)
    }

    /// Whether a failure of this check fails the submission.
    #[must_use]
    pub fn fails(&self, check: OfficialCheck) -> bool {
        self.looks_at(check) && !self.logged.contains(&check)
    }

    /// Whether the checker has this trait.
    #[must_use]
    pub fn has(&self, one: Trait) -> bool {
        self.traits.contains(&one)
    }
}
