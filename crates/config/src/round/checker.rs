//! The official checkers of a round: what each looks at, what it only logs, and the ways in which it differs.
//!
//! These are facts about other programs, needed to predict their verdict. What the rules ask is elsewhere.

use serde::{Deserialize, Serialize};

/// An official checker at one revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checker {
    /// The tag or commit, as users name it.
    pub revision: String,
    /// Its family.
    pub engine: Engine,
    /// What it does not look at.
    #[serde(default)]
    pub absent: Vec<OfficialCheck>,
    /// What it logs and accepts.
    #[serde(default)]
    pub logged: Vec<OfficialCheck>,
    /// In what else it differs from its relatives.
    #[serde(default)]
    pub traits: Vec<Trait>,
    /// Where its own tables are not the round's: parts of `[submission]`, taken key by key in the place of what the round
    /// says. `false` takes a key away.
    #[serde(default)]
    pub instead: toml::Table,
}

/// The two families of official checkers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// One file, `submission_checker.py`, up to v5.1: walks the tree and judges directories.
    Monolith,
    /// The package `submission_checker/` since v6.0: judges scenario by scenario.
    Package,
}

/// A check that some revisions make and others do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OfficialCheck {
    /// Files in the root other than `.md` and `.pdf`.
    RootFiles,
    /// Files in a division's directory.
    DivisionFiles,
    /// Symbolic links.
    Links,
    /// Files beyond the size limit.
    LargeFiles,
    /// Names that begin with a dot.
    DotNames,
    /// Names with a space.
    Spaces,
    /// `__pycache__` directories.
    Pycache,
    /// Empty directories.
    EmptyDirectories,
    /// Reading the open division's `model_mapping.json`.
    ModelMapping,
    /// Systems and measurements without results.
    SystemsWithoutResults,
    /// The calibration document.
    Calibration,
    /// Contents of the measurement directory.
    Measurements,
    /// Empty files in it.
    EmptyMeasurementFiles,
    /// Power analyzer files in it or above it.
    PowerMeasurementFiles,
    /// The exact files of the accuracy directory.
    AccuracyFileSet,
    /// The exact files of `run_1`.
    PerformanceFileSet,
    /// The round's seeds.
    Seeds,
    /// The smallest number of queries.
    MinQueries,
    /// The Offline query's samples.
    OfflineSamples,
    /// The minimum duration.
    MinDuration,
    /// Early stopping's own verdict.
    EarlyStopping,
    /// The Server latency bound.
    Latency,
    /// Equal issue.
    EqualIssue,
    /// The accuracy run's sample count.
    DatasetSize,
    /// Images of the accuracy run.
    ExtraAccuracyFiles,
    /// A result in the ranging run.
    Ranging,
    /// LoadGen's own `VALID`.
    ResultValidity,
    /// LoadGen's errors in performance and test runs.
    LoadgenErrorsPerformance,
    /// LoadGen's errors in accuracy runs.
    LoadgenErrorsAccuracy,
    /// The Power working group's checker.
    PowerChecker,
}

/// A way in which one checker differs from its relatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trait {
    /// Any symbolic link is refused, not only a broken one.
    AnyLink,
    /// Only the first metric is read, and its last value before the hash counts.
    OneAccuracyMetric,
    /// The CSV gives the first metric's number alone.
    PlainAccuracy,
    /// Energy per query in joules, not millijoules.
    PowerInJoules,
    /// Every line of the power log is read, not only those that begin with `Time`.
    PowerLogEveryLine,
    /// Power samples of 0 W and less are averaged in.
    PowerLogZeros,
    /// The power checker takes PTDaemon's log for local time, not for UTC.
    PowerLogInLocalTime,
    /// Power analyzer files may lie anywhere below `measurements/`.
    PowerFilesAnywhere,
    /// The ranging run's power is averaged too, and must have samples.
    RangingPower,
    /// A compliance directory is asked for even where no test is.
    ComplianceDirectoryAlways,
    /// The same, but for results whose directory's name holds `gptj`.
    ComplianceDirectoryButGptj,
    /// The CSV spells a column `compilance`.
    MisspeltCompliance,
    /// Equal issue is looked for in the conf files beside the measurements.
    EqualIssueInConf,
    /// Where equal issue is asked, the number of queries is not.
    EqualIssueFreesQueries,
    /// Interactive is known in one spelling alone, and not to the power check.
    InteractiveHalfKnown,
    /// The CSV has no columns for the power supplies' capacity and private names.
    NoDesignColumns,
    /// Equal issue is not asked in the open division.
    EqualIssueNotInOpen,
    /// The general TEST01 limit is used for every metric.
    MetricDeltaIgnored,
    /// `num_errors` in the log stands for the number of its error lines.
    CountsNumErrors,
    /// Ends with a traceback at an accuracy log with errors.
    CrashesOnAccuracyErrors,
    /// Without any metric, accuracy fails in the open division too.
    EmptyAccuracyFailsOpen,
    /// `system_power_only` suppresses the performance row.
    PowerOnlySystems,
    /// Bounds of token latencies hold in every scenario but Offline.
    TokenLimitsInEveryScenario,
    /// Token latencies within bounds make a run valid, whatever LoadGen says of it.
    TokenLimitsDecide,
    /// A benchmark's own units are looked up by the directory's name.
    UnitsByDirectory,
    /// The summary counts items and nothing else.
    ShortSummary,
    /// The CSV gives the power supplies' capacity, out of the system description or a file beside it.
    NameplatePower,
    /// The CSV has a column for the weights' types.
    WeightDataTypes,
}

impl Checker {
    /// Whether the checker looks at this.
    #[must_use]
    pub fn looks_at(&self, check: OfficialCheck) -> bool {
        !self.absent.contains(&check)
    }

    /// Whether a fault of this kind fails.
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
