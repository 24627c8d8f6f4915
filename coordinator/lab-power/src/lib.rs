//! Power sessions as the coordinator makes them: [`PowerSessionRunner`] with the machines of the official programs, the programs beside them,
//! the verdict and the record.
//!
//! The session of the official programs itself is in `regatta-power`, and Regatta's own judgement in `regatta-submission-check`.

mod agent_bench;
mod cancel;
mod machine;
mod machine_check;
mod meter_check;
mod meter_conf;
mod meter_lease;
pub mod network_namespace;
mod official_verdict;
mod preflight;
mod preflight_line;
mod ptd_program;
mod rails_power;
mod run_workload;
mod session_check;
mod session_error;
mod session_machines;
mod session_progress;
mod session_record;
mod session_runner;
mod session_times;
mod session_verdict;
mod session_watch;
mod workload_error;

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
};

pub use agent_bench::AgentBench;
pub use cancel::{Cancel, CancelReason};
pub use machine::{Link, LinkError, Machine, MachineError, Programs};
pub use meter_conf::server_conf;
pub use meter_lease::LeaseError;
pub use official_verdict::OfficialVerdict;
pub use preflight::{Preflight, PreflightResult, client_fitness};
pub use preflight_line::PreflightLine;
pub use ptd_program::write_ptd_program;
pub use rails_power::RailsPower;
pub use session_check::words;
pub use session_error::{PowerSessionError, session_hint};
pub use session_machines::{DEVICE_PYTHON, DeviceAccess, Logins, MachinesError, SessionMachines};
pub use session_progress::{SessionNews, SessionProgress, SessionTracker};
pub use session_record::{SessionRecordError, read_session_record, record_late_transfer};
pub use session_runner::{PowerSessionJob, PowerSessionRunner};
pub use session_verdict::{SessionVerdict, VerdictError, judge};

/// Returns a loopback TCP port that was free a moment ago.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
