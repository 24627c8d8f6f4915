//! Identity of a simulated PTDaemon, the values of its meter, and its faults.

use std::path::PathBuf;

use regatta_catalogue::round::SIMULATION_MARK;

use super::{fault::PtdFault, load::SimulatedLoad};

/// A simulated PTDaemon.
#[derive(Debug, Clone)]
pub struct SimulatedPtd {
    /// PTDaemon's name of the meter, such as `YokogawaWT310E`.
    pub model: String,
    /// PTDaemon's version, such as `1.11.1`.
    pub version: String,
    /// PTDaemon's number of the meter.
    pub device_type: i64,
    pub channels: usize,
    /// The TCP port on loopback.
    pub port: u16,
    /// The file that gets a line per sample (`-l`).
    pub log: PathBuf,
    /// What the meter shows.
    pub load: SimulatedLoad,
    pub faults: Vec<PtdFault>,
}

impl SimulatedPtd {
    /// The reply to `Identify`.
    pub(super) fn identity(&self) -> String {
        let model = self.model.trim_start_matches("Yokogawa");
        let channels = if self.channels > 1 { 2 } else { 1 };
        format!(
            "{},1000,1,1,1,1,0,0,1,version={}-{SIMULATION_MARK}-20260101,OS={SIMULATION_MARK},mode=power,1,1,{channels},0,0,\
             no_cal_date,{SIMULATION_MARK};{model};0;0",
            self.model, self.version
        )
    }
}
