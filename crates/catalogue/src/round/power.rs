//! Parameters of a round's power checker (`power_checker.py`, in power-dev `compliance/check.py`).
//!
//! The submission crate has the checks themselves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What Regatta's simulated PTDaemon writes wherever PTDaemon names itself. No session with this mark is a measurement, in any round.
pub const SIMULATION_MARK: &str = "FAKEPTD";

/// How Regatta's own power client and server begin their names in a session. No session of theirs is valid for submission, in any round.
pub const OWN_PROGRAM_PREFIX: &str = "regatta-power-";

/// How the checker treats a testing run that is shorter than the ranging run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DurationRule {
    /// An error when the lengths differ by this share of the longer one or more (until v3.0).
    DiffersBelow(f64),
    /// A warning when the testing run is shorter by more than this share of the ranging run (since v3.1).
    ShorterAtMost(f64),
}

/// The power checker's parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerRules {
    /// Accepted versions of PTDaemon.
    pub ptd_versions: Vec<String>,
    /// Accepted power meters: PTDaemon's name and PTDaemon's number of each.
    pub meters: BTreeMap<String, i64>,
    /// Largest accepted difference between the clocks of client and server, in milliseconds.
    pub clock_tolerance_ms: u32,
    /// Whether the checker reads the times of PTDaemon's log as local time (until v3.0) instead of UTC.
    #[serde(default)]
    pub log_in_local_time: bool,
    /// Margin at each end of the run in which PTDaemon's warnings are ignored, in seconds. Since v3.1 the checker treats its own
    /// milliseconds as seconds.
    #[serde(default)]
    pub warning_margin_s: f64,
    /// Whether an uncertainty above 1 % during the run is an error.
    #[serde(default)]
    pub uncertainty_is_error: bool,
    /// PTDaemon errors that the checker ignores in the ranging run.
    pub ranging_errors: Vec<String>,
    /// How the checker compares the lengths of both runs.
    pub duration: DurationRule,
    /// How much less power the testing run may draw than the ranging run, in percent. `None` disables the check.
    #[serde(default)]
    pub power_drop_percent: Option<f64>,
    /// Whether every line of `spl.txt` must be a sample, not only lines that begin with `Time`.
    #[serde(default)]
    pub every_sample_line: bool,
    /// Which of the commands that set the current's range may restore it, counted from 1.
    pub amps_restored_by: Vec<usize>,
    /// Whether the server's configuration lists its analyzers (since v5.1). Earlier ones describe a single analyzer.
    #[serde(default)]
    pub analyzers_listed: bool,
    /// SHA-1 of every source file of the accepted releases of `ptd_client_server`.
    pub sources: Vec<BTreeMap<String, String>>,
}
