//! Our side: a device that connects with a finished run delivers it to `regatta serve`. The time begins with the agent's start,
//! so that it includes hashing and sealing. It ends when the coordinator's store has the complete log.

use std::{
    fs,
    io::Read as _,
    path::Path,
    time::{Duration, Instant},
};

use regatta_tests::{Broker, LARGE_LOG, Lab};
use sha2::{Digest as _, Sha256};

use crate::{AnyError, memory::Reserve, place::Place};

/// The cost of one delivery.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivery {
    /// Seconds from the agent's start to a complete log.
    pub(crate) seconds: f64,
    /// Processor seconds of the agent.
    pub(crate) agent_cpu: f64,
    /// Processor seconds of the coordinator, including its broker.
    pub(crate) coordinator_cpu: f64,
    /// Seconds that the coordinator's flushing thread waited for the disk.
    pub(crate) flushing: f64,
    /// The agent's largest resident size in MiB.
    pub(crate) agent_peak_mib: f64,
    /// The coordinator's largest resident size in MiB.
    pub(crate) coordinator_peak_mib: f64,
    /// Bytes that the device sent over the line, including headers; 0 on loopback.
    pub(crate) line_bytes: u64,
}

/// Delivers `log` once over TLS 1.3.
pub(crate) fn deliver(log: &Path, directory: &Path, place: &Place) -> Result<Delivery, AnyError> {
    let lab = Lab::secure_in(directory, Broker::Embedded, place.coordinator_address());
    let lab = lab.ok_or("the embedded broker needs nothing")?;
    deliver_in(lab, log, directory, place)
}

/// Delivers `log` once over plain TCP on loopback, for the share of TLS.
pub(crate) fn deliver_plain(log: &Path, directory: &Path) -> Result<Delivery, AnyError> {
    let lab = Lab::plain_in(directory, Broker::Embedded);
    let lab = lab.ok_or("the embedded broker needs nothing")?;
    deliver_in(lab, log, directory, &Place::Loopback)
}

fn deliver_in(mut lab: Lab, log: &Path, directory: &Path, place: &Place) -> Result<Delivery, AnyError> {
    lab.coordinator_prefix = place.coordinator_prefix();
    lab.device_prefix = place.device_prefix();
    lab.start_coordinator();
    let run = lab.leave_run(log);
    let coordinator = lab.coordinator.as_ref().ok_or("it was started")?;
    let (cpu_before, line_before) = (coordinator.cpu_seconds(), place.bytes_sent()?);
    let copy = lab.arriving(&run, LARGE_LOG);
    let _reserve = Reserve::for_copy(copy, fs::metadata(log)?.len(), directory)?;
    let begin = Instant::now();
    lab.start_device();
    while !lab.is_whole(&run, LARGE_LOG) {
        if begin.elapsed() > Duration::from_secs(600) {
            return Err("not delivered within ten minutes".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let seconds = begin.elapsed().as_secs_f64();
    let line_bytes = place.bytes_sent()? - line_before;
    let (Some(coordinator), Some(device)) = (&lab.coordinator, &lab.device) else {
        return Err("both were started".into());
    };
    let delivery = Delivery {
        seconds,
        agent_cpu: device.cpu_seconds(),
        coordinator_cpu: coordinator.cpu_seconds() - cpu_before,
        flushing: flushing_seconds(&coordinator.output(), LARGE_LOG)
            .ok_or("the coordinator's log has no `flushing_ms` of the stream")?,
        agent_peak_mib: device.peak_kib() as f64 / 1024.0,
        coordinator_peak_mib: coordinator.peak_kib() as f64 / 1024.0,
        line_bytes,
    };
    if sha256(&lab.delivered(&run, LARGE_LOG))? != sha256(log)? {
        return Err("what arrived is not what was sent".into());
    }
    Ok(delivery)
}

/// Returns the seconds from the coordinator's debug log about a complete stream: `... stream=NAME ... flushing_ms=N`.
fn flushing_seconds(printed: &str, stream: &str) -> Option<f64> {
    let mut lines = printed.lines().filter(|line| line.contains(stream));
    let (_, behind) = lines.find_map(|line| line.split_once("flushing_ms="))?;
    let milliseconds: f64 = behind.split_whitespace().next()?.parse().ok()?;
    Some(milliseconds / 1000.0)
}

pub(crate) fn sha256(path: &Path) -> Result<Vec<u8>, AnyError> {
    let mut file = fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 256 * 1024];
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            break;
        }
        hasher.update(&piece[..read]);
    }
    Ok(hasher.finalize().to_vec())
}
