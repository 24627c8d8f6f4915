//! The report of a machine about itself before a session: the output of `probe.py`, which runs there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The program that looks at a machine.
pub(super) const PROBE: &str = include_str!("probe.py");

/// The paths, ports and servers that the probe examines.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ProbeRequest<'a> {
    /// The copy of power-dev.
    pub(crate) power_dev: Option<&'a str>,
    /// PTDaemon's executable, on a director.
    pub(crate) ptd: Option<&'a str>,
    /// The meter's device file, on a director.
    pub(crate) meter: Option<&'a str>,
    /// TCP ports that must be free.
    pub(crate) ports: Vec<u16>,
    /// An address and port that the machine must reach.
    pub(crate) reach: Option<(&'a str, u16)>,
    /// The NTP server.
    pub(crate) ntp: &'a str,
    /// The directory whose disk gets the session's files.
    pub(crate) directory: &'a str,
    /// The directory of the sessions, in which earlier ones may have left files.
    pub(crate) left_over: Option<&'a str>,
}

/// The probe's report. Its texts come from another machine.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Probe {
    pub(crate) python: (u32, u32),
    /// Whether MLPP_DEBUG is set.
    pub(crate) debug: bool,
    /// The time zone, as `+0100`.
    pub(crate) zone: String,
    pub(crate) boot_id: Option<String>,
    /// `None` when the directory is no copy.
    pub(crate) power_dev: Option<ProbedPowerDev>,
    pub(crate) ptd: Option<String>,
    pub(crate) meter: Option<String>,
    pub(crate) ports_in_use: Vec<u16>,
    /// `open`, `refused`, or an error.
    pub(crate) reach: Option<String>,
    pub(crate) ntp: NtpAnswer,
    pub(crate) free_mib: Option<u64>,
    pub(crate) left_over: Vec<String>,
}

/// The sources of a copy of power-dev.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ProbedPowerDev {
    /// SHA-1 by path.
    pub(crate) sources: BTreeMap<String, String>,
    pub(crate) carriage_returns: Vec<String>,
}

/// The answer of an NTP server.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NtpAnswer {
    /// Its clock minus the machine's, in seconds.
    Offset(f64),
    /// The reason why there is none.
    Error(String),
}
