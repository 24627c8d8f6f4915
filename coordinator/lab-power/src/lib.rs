//! Power sessions as the coordinator makes them: the machines of the official programs, the programs beside them, and the verdict.
//!
//! The session itself is in `regatta-power`, and Regatta's own judgement in `regatta-submission-check`.

mod agent_bench;
pub mod command_output;
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
mod session_record;
mod session_times;
mod session_verdict;
mod session_watch;

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
};

pub use agent_bench::AgentBench;
pub use machine::{Link, LinkError, Machine, Programs, RemoteDirector, RemoteSystem};
pub use meter_conf::server_conf;
pub use meter_lease::{LeaseError, MeterLease};
pub use official_verdict::OfficialVerdict;
pub use preflight::{Preflight, PreflightResult, client_fitness};
pub use preflight_line::PreflightLine;
pub use ptd_program::write_ptd_program;
pub use rails_power::RailsPower;
pub use run_workload::{HandOver, RunOrder, RunWorkload, copy_logs, upload_logs};
pub use session_check::{checker_copy, run_length, words};
pub use session_record::{SessionFacts, SessionRecord, UnjudgedSession};
pub use session_times::SessionTimes;
pub use session_verdict::SessionVerdict;
pub use session_watch::SessionWatch;

/// Returns a loopback TCP port that was free a moment ago.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
