//! The report of a machine about itself before a session: the output of `probe.py`, which runs there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The program that looks at a machine.
pub(super) const PROBE: &str = include_str!("probe.py");

/// The paths, ports and servers that the probe examines.
#[derive(Debug, Clone, Serialize)]
pub struct ProbeRequest<'a> {
    /// The copy of power-dev.
    pub power_dev: Option<&'a str>,
    /// PTDaemon's executable, on a director.
    pub ptd: Option<&'a str>,
    /// The meter's device file, on a director.
    pub meter: Option<&'a str>,
    /// TCP ports that must be free.
    pub ports: Vec<u16>,
    /// An address and port that the machine must reach.
    pub reach: Option<(&'a str, u16)>,
    /// The NTP server.
    pub ntp: &'a str,
    /// The directory whose disk gets the session's files.
    pub directory: &'a str,
    /// The directory of the sessions, in which earlier ones may have left files.
    pub left_over: Option<&'a str>,
}

/// The probe's report. Its texts come from another machine.
#[derive(Debug, Clone, Deserialize)]
pub struct Probe {
    pub python: (u32, u32),
    /// Whether MLPP_DEBUG is set.
    pub debug: bool,
    /// The time zone, as `+0100`.
    pub zone: String,
    pub boot_id: Option<String>,
    /// `None` when the directory is not a copy of power-dev.
    pub power_dev: Option<ProbedPowerDev>,
    pub ptd: Option<String>,
    pub meter: Option<String>,
    pub ports_in_use: Vec<u16>,
    /// `open`, `refused`, or an error.
    pub reach: Option<String>,
    pub ntp: NtpAnswer,
    pub free_mib: Option<u64>,
    pub left_over: Vec<String>,
}

/// The sources of a copy of power-dev.
#[derive(Debug, Clone, Deserialize)]
pub struct ProbedPowerDev {
    /// SHA-1 by path.
    pub sources: BTreeMap<String, String>,
    pub carriage_returns: Vec<String>,
}

/// The answer of an NTP server.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NtpAnswer {
    /// Its clock minus the machine's, in seconds.
    Offset(f64),
    /// The reason why there is none.
    Error(String),
}
