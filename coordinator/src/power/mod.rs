//! Power sessions as the coordinator makes them: what runs beside the official programs, and what their checker says.
//!
//! The session itself is in `regatta-power`, and Regatta's own judgement in `regatta-submission`.

mod agent_bench;
mod meter_conf;
mod meter_lease;
pub(crate) mod network_namespace;
mod official_verdict;
pub(crate) mod preflight;
mod ptd_program;
mod run_workload;
mod session_record;

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
};

pub(crate) use agent_bench::AgentBench;
pub(crate) use meter_conf::server_conf;
pub(crate) use meter_lease::MeterLease;
pub(crate) use official_verdict::OfficialVerdict;
pub(crate) use preflight::PreflightLine;
pub(crate) use ptd_program::write_ptd_program;
pub(crate) use run_workload::RunWorkload;
pub(crate) use session_record::SessionRecord;

/// Returns a loopback TCP port that was free a moment ago.
pub(crate) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Quotes a word for a POSIX shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
