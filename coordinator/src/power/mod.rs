//! Power sessions as the coordinator makes them: the machines of the official programs, the programs beside them, and the verdict.
//!
//! The session itself is in `regatta-power`, and Regatta's own judgement in `regatta-submission`.

mod agent_bench;
mod machine;
mod machine_check;
mod meter_check;
mod meter_conf;
mod meter_lease;
pub(crate) mod network_namespace;
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

pub(crate) use agent_bench::AgentBench;
pub(crate) use machine::{Link, LinkError, Machine, Programs, RemoteDirector, RemoteSystem};
pub(crate) use meter_conf::server_conf;
pub(crate) use meter_lease::{LeaseError, MeterLease};
pub(crate) use official_verdict::OfficialVerdict;
pub(crate) use preflight::{Preflight, PreflightResult, client_fitness};
pub(crate) use preflight_line::PreflightLine;
pub(crate) use ptd_program::write_ptd_program;
pub(crate) use rails_power::RailsPower;
pub(crate) use run_workload::{HandOver, RunOrder, RunWorkload, copy_logs, upload_logs};
pub(crate) use session_check::{checker_copy, run_length, words};
pub(crate) use session_record::{SessionFacts, SessionRecord, UnjudgedSession};
pub(crate) use session_times::SessionTimes;
pub(crate) use session_verdict::SessionVerdict;
pub(crate) use session_watch::SessionWatch;

/// Returns a loopback TCP port that was free a moment ago.
pub(crate) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
