//! How a round's power checker (`power_checker.py`, in power-dev `compliance/check.py`) judges a measured session.
//!
//! Parameters only; the checks themselves are the submission crate's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the checker says to a testing run that is shorter than the ranging run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DurationRule {
    /// Refused when either differs from the longer one by this share or more (until v3.0).
    DiffersBelow(f64),
    /// Warned of when the testing run is shorter by more than this share of the ranging run (since v3.1).
    ShorterAtMost(f64),
}

/// The power checker's parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerRules {
    /// Versions of PTDaemon that it accepts.
    pub ptd_versions: Vec<String>,
    /// Power meters that it accepts: the name that PTDaemon gives, and PTDaemon's number for it.
    pub meters: BTreeMap<String, i64>,
    /// How far the clocks of client and server may lie apart, in milliseconds.
    pub clock_tolerance_ms: u32,
    /// Whether PTDaemon's log is taken for local time (until v3.0) and not for UTC.
    #[serde(default)]
    pub log_in_local_time: bool,
    /// How long at either end of the run PTDaemon's warnings are not looked at, in seconds. Since v3.1 the checker takes
    /// its own milliseconds for seconds.
    #[serde(default)]
    pub warning_margin_s: f64,
    /// Whether an uncertainty beyond 1 % during the run is an error.
    #[serde(default)]
    pub uncertainty_is_error: bool,
    /// What PTDaemon may report as errors in the ranging run without a word from the checker.
    pub ranging_errors: Vec<String>,
    /// How the lengths of both runs are compared.
    pub duration: DurationRule,
    /// How much less power the testing run may draw than the ranging run, in percent; not looked at without it.
    #[serde(default)]
    pub power_drop_percent: Option<f64>,
    /// Whether every line of `spl.txt` must be a sample, and not only those that begin with `Time`.
    #[serde(default)]
    pub every_sample_line: bool,
    /// Which of the commands that set the current's range may restore it, counted from 1.
    pub amps_restored_by: Vec<usize>,
    /// Whether the server's configuration lists its analyzers (since v5.1) or is the only one's.
    #[serde(default)]
    pub analyzers_listed: bool,
    /// SHA-1 of every source file of the releases of `ptd_client_server` that are accepted.
    pub sources: Vec<BTreeMap<String, String>>,
}
