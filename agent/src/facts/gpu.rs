//! What CUDA says of the machine's GPUs. Asked in a process of its own ([`probe`]): a driver that hangs, crashes or keeps memory
//! does so there, and daemon and doctor stay as lean as they are. A process that loads CUDA anyway asks directly ([`ask_here`]).

use std::{
    io::{self, Read, Write as _},
    os::{fd::AsFd, unix::process::CommandExt as _},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use regatta_cuda::{Device, Driver, DriverOpenError};
use regatta_types::documents::GpuFacts;
use rustix::io::ioctl_fionbio;

use crate::exit::{self, Failure};

/// How long the process may take. A Jetson's driver starts in some tenths of a second.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a process that is killed may take to end: one that waits inside the kernel does not.
const MERCY: Duration = Duration::from_millis(500);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// Longest answer that is read, which is some hundred GPUs, and all that a pipe holds.
const MOST: u64 = 64 << 10;

/// Why nobody knows which GPUs there are.
#[derive(Debug, thiserror::Error)]
enum ProbeError {
    /// The process does not start, or cannot be waited for.
    #[error("`regatta-agent gpus` cannot be run")]
    Run(#[source] io::Error),
    /// It takes too long.
    #[error("CUDA's driver gave no answer within {} s", PATIENCE.as_secs())]
    Silent,
    /// It crashed, or CUDA's driver does not start.
    #[error("`regatta-agent gpus` ended with {status}{}{said}", if said.is_empty() { "" } else { ": " })]
    Ended {
        /// How it ended.
        status: ExitStatus,
        /// What it said last.
        said: String,
    },
    /// It printed something else.
    #[error("what `regatta-agent gpus` printed is no answer")]
    Garbled(#[source] serde_json::Error),
}

/// The GPUs in the driver's order; none where there is no driver, or it finds none.
///
/// # Errors
/// [`DriverOpenError`] when there is a driver, and it does not do.
fn devices() -> Result<Vec<Device>, DriverOpenError> {
    match Driver::open() {
        Ok(driver) => driver.devices(),
        Err(DriverOpenError::NotFound { .. }) => Ok(Vec::new()),
        Err(DriverOpenError::Init(error)) if error.is_no_device() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The same. A driver that does not do is told of, and leaves none.
pub(crate) fn devices_here() -> Vec<Device> {
    devices().unwrap_or_else(unknown)
}

/// What they are, asked in this process.
pub(crate) fn ask_here() -> Vec<GpuFacts> {
    devices_here().iter().map(facts).collect()
}

/// Says why nothing is known.
fn unknown<T>(why: impl Into<anyhow::Error>) -> Vec<T> {
    tracing::warn!("the GPUs are unknown: {:#}", why.into());
    Vec::new()
}

fn facts(device: &Device) -> GpuFacts {
    let (major, minor) = device.compute_capability;
    GpuFacts {
        name: device.name.clone(),
        compute_capability: format!("{major}.{minor}"),
        multiprocessors: device.multiprocessors,
        memory_bytes: device.memory_bytes,
        integrated: device.integrated,
    }
}

/// The same, from `regatta-agent gpus` as a process of its own. Takes at most some seconds, whatever the driver does.
pub(crate) fn probe() -> Vec<GpuFacts> {
    answer().unwrap_or_else(unknown)
}

fn answer() -> Result<Vec<GpuFacts>, ProbeError> {
    // The program that is running, also when an upgrade has replaced it on disk meanwhile.
    let mut child = Command::new("/proc/self/exe")
        .arg0("regatta-agent")
        .arg("gpus")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(ProbeError::Run)?;
    let status = wait(&mut child)?;
    let (out, said) = (
        last_line(child.stdout.take()).map_err(ProbeError::Run)?,
        last_line(child.stderr.take()).map_err(ProbeError::Run)?,
    );
    if !status.success() {
        let said = String::from_utf8_lossy(&said).into_owned();
        return Err(ProbeError::Ended { status, said });
    }
    serde_json::from_slice(&out).map_err(ProbeError::Garbled)
}

/// Waits until the process ends. One that takes too long is killed, and left to the system where even that takes long.
fn wait(child: &mut Child) -> Result<ExitStatus, ProbeError> {
    if let Some(status) = ends_within(child, PATIENCE)? {
        return Ok(status);
    }
    child.kill().map_err(ProbeError::Run)?;
    ends_within(child, MERCY)?;
    Err(ProbeError::Silent)
}

fn ends_within(child: &mut Child, time: Duration) -> Result<Option<ExitStatus>, ProbeError> {
    let end = Instant::now() + time;
    loop {
        let status = child.try_wait().map_err(ProbeError::Run)?;
        if status.is_some() || Instant::now() >= end {
            return Ok(status);
        }
        thread::sleep(LOOK);
    }
}

/// The last line of what a process that has ended left in its pipe: a driver may have talked before. Waits for nobody, though a
/// process that the driver left behind may hold the pipe open.
fn last_line(pipe: Option<impl Read + AsFd>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    if let Some(pipe) = pipe {
        ioctl_fionbio(&pipe, true)?;
        match pipe.take(MOST).read_to_end(&mut text) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
    let last = text.trim_ascii_end().rsplit(|&byte| byte == b'\n').next();
    Ok(last.map(<[u8]>::to_vec).unwrap_or_default())
}

/// `regatta-agent gpus`: the answer as one line of JSON.
///
/// # Errors
/// When CUDA's driver does not do, or standard output cannot be written.
pub(crate) fn print() -> Result<u8, Failure> {
    let gpus: Vec<GpuFacts> = devices().map_err(Failure::could_not)?.iter().map(facts).collect();
    let mut out = io::stdout().lock();
    // Behind whatever the driver may have left unended.
    writeln!(out)
        .and_then(|()| serde_json::to_writer(&mut out, &gpus).map_err(io::Error::from))
        .and_then(|()| writeln!(out))
        .context("the GPUs cannot be printed")?;
    Ok(exit::OK)
}
