//! The connection and use of a power meter. The coordinator stores it, and the record of a power session contains it.

use serde::{Deserialize, Serialize};

/// The connection and use of a meter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeterSettings {
    /// The SSH login of the director, `user@host[:port]`. `None` when the meter is connected to this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub director: Option<String>,
    /// The address at which devices reach the director, when it is another than the login's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The copy of power-dev on this machine whose checker judges. `None` when `power_dev` is on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checker: Option<String>,
    /// The copy of power-dev on the director. `None` where only Regatta's own programs are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_dev: Option<String>,
    /// PTDaemon's executable on the director.
    pub ptd: String,
    /// The Python interpreter of the official server.
    pub python: String,
    /// PTDaemon's number of the meter.
    pub device_type: i64,
    /// PTDaemon's flag of the interface, or nothing.
    pub interface: String,
    /// The port of the meter on its machine.
    pub device_port: String,
    /// The channels: their count, or the first and the count.
    pub channel: Vec<i64>,
    /// The GPIB board.
    pub gpib_board: Option<i64>,
    /// The official server's TCP port.
    pub port: u16,
    /// PTDaemon's TCP port.
    pub ptd_port: u16,
    /// The NTP server of the official programs.
    pub ntp: String,
}
