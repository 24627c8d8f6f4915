//! A simulated PTDaemon for rehearsals: it answers the official server as PTDaemon does, and measures nothing.
//!
//! Identity, logs and console name [`SIMULATION_MARK`], so that no session with it passes for a measurement. The official checker does
//! not look for the mark; `regatta power check` and `submission check` do.

mod console;
mod ending;
mod fault;
mod load;
mod measurement;
mod options;
mod protocol;
mod serve;

pub use fault::{FaultKind, PtdFault, PtdFaultError};
pub use load::SimulatedLoad;
pub use options::SimulatedPtd;
pub use regatta_catalogue::round::SIMULATION_MARK;
