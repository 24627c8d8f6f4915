//! What is known about SPEC's PTDaemon: its port, the numbers of its meters, and the texts that it exchanges with the official server.
//!
//! Sources: `lib/server.py` and `compliance/check.py` of mlcommons/power-dev, and published logs. PTDaemon itself is SPEC's.

/// The port that PTDaemon listens on by default.
pub const DEFAULT_PORT: u16 = 8888;

/// The multichannel WT500. Its channels are counted, not listed.
pub const WT500_MULTICHANNEL: i64 = 48;
/// The other device types that measure on several channels.
const OTHER_MULTICHANNEL: [i64; 3] = [59, 61, 77];
/// The device types that measure direct current.
pub const DC: [i64; 3] = [508, 549, 586];

/// Returns whether a device type measures on several channels.
#[must_use]
pub fn is_multichannel(device_type: i64) -> bool {
    device_type == WT500_MULTICHANNEL || OTHER_MULTICHANNEL.contains(&device_type)
}

/// Returns the largest range of current in amperes of the meters whose range is known: those of Yokogawa's data sheets.
#[must_use]
pub fn largest_amps(device_type: i64) -> Option<u32> {
    match device_type {
        8 | 49 | 52 | 77 | 508 | 549 | 586 => Some(20),
        66 => Some(30),
        35 | 48 => Some(40),
        47 => Some(50),
        _ => None,
    }
}

/// Replies that the official server or checker compares.
pub(crate) mod reply {
    /// To `Hello`.
    pub(crate) const HELLO: &str = "Hello, PTDaemon here!";
    /// To `SR,V`.
    pub(crate) const VOLTS_CHANGED: &str = "Range V changed";
    /// To `SR,A`.
    pub(crate) const AMPS_CHANGED: &str = "Range A changed";
    /// To `Stop`.
    pub(crate) const STOPPED: &str = "Stopping untimed measurement";
    /// To `Stop` without a measurement.
    pub(crate) const NOTHING_TO_STOP: &str = "Error: no measurement to stop";
    /// To `RL,*,*` of a meter with one channel.
    pub(crate) const INVALID_PARAMETERS: &str = "Error: Invalid number of parameters";
    /// The reply to an unknown command.
    pub(crate) const UNKNOWN_COMMAND: &str = "Error: Unknown command";
}
