//! The machine's GPUs, as CUDA reports them, and whether TensorRT can be used on them. A separate process queries CUDA ([`probe`]): a driver that hangs, crashes
//! or keeps memory does not affect daemon and doctor. A process that loads CUDA anyway queries it directly
//! ([`read_gpus`]).

use std::{
    io::{self, Read, Write as _},
    os::{fd::AsFd, unix::process::CommandExt as _},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use regatta_cuda::{Device, devices};
use regatta_tensorrt::{InstalledTensorRt, ShimDirectories};
use regatta_text::ErrorChain;
use regatta_types::{ExitCode, documents::GpuFacts};
use rustix::io::ioctl_fionbio;

use crate::exit::Failure;

/// Time limit of the process. A Jetson's driver starts within a few tenths of a second, but TensorRT's library is hundreds of megabytes.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for a killed process to end. A process that waits inside the kernel does not end.
const MERCY: Duration = Duration::from_millis(500);
/// Polling interval.
const LOOK: Duration = Duration::from_millis(10);
/// Longest answer in bytes: several hundred GPUs, and the capacity of a pipe.
const MAX: u64 = 64 << 10;

/// The GPUs, and the reason why TensorRT cannot be used on them, if there is one.
pub(crate) type FoundGpus = (Vec<GpuFacts>, Option<String>);

/// Why the GPUs are unknown.
#[derive(Debug, thiserror::Error)]
enum ProbeError {
    /// The process cannot be started or waited for.
    #[error("`regatta-agent gpus` cannot be run")]
    Run(#[source] io::Error),
    /// The process exceeded its time limit.
    #[error("CUDA's driver did not respond within {} s", PATIENCE.as_secs())]
    Silent,
    /// The process crashed, or CUDA's driver did not start.
    #[error("`regatta-agent gpus` ended with {status}{}{stderr}", if stderr.is_empty() { "" } else { ": " })]
    Ended {
        status: ExitStatus,
        /// Its last line of output.
        stderr: String,
    },
    /// Its output is not an answer.
    #[error("the output of `regatta-agent gpus` cannot be parsed")]
    Garbled(#[source] serde_json::Error),
}

/// Returns the facts of the GPUs, queried in this process.
pub(crate) fn read_gpus() -> Vec<GpuFacts> {
    devices().unwrap_or_else(unknown).iter().map(facts).collect()
}

/// Logs why the GPUs are unknown, and returns none.
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

/// Returns the GPUs that a `regatta-agent gpus` process finds. Takes a few seconds at most, even if the driver hangs.
pub(crate) fn probe() -> FoundGpus {
    answer().unwrap_or_else(|error| (unknown(error), None))
}

fn answer() -> Result<FoundGpus, ProbeError> {
    // This is the running binary, even if an upgrade has replaced the file.
    let mut child = Command::new("/proc/self/exe")
        .arg0("regatta-agent")
        .arg("gpus")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(ProbeError::Run)?;
    let status = wait(&mut child)?;
    let (out, stderr) = (
        last_line(child.stdout.take()).map_err(ProbeError::Run)?,
        last_line(child.stderr.take()).map_err(ProbeError::Run)?,
    );
    if !status.success() {
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        return Err(ProbeError::Ended { status, stderr });
    }
    serde_json::from_slice(&out).map_err(ProbeError::Garbled)
}

/// Waits until the process ends. Kills it after the time limit, and does not wait long for the killed process.
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

/// Returns the last line in the pipe of a process that has ended, because a driver may print lines before it. Does not
/// block, even if another process holds the pipe open.
fn last_line(pipe: Option<impl Read + AsFd>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    if let Some(pipe) = pipe {
        ioctl_fionbio(&pipe, true)?;
        match pipe.take(MAX).read_to_end(&mut text) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
    let last = text.trim_ascii_end().rsplit(|&byte| byte == b'\n').next();
    Ok(last.map(<[u8]>::to_vec).unwrap_or_default())
}

/// Returns the reason why TensorRT engines cannot be loaded here. Opens the library to read its version, which selects the shim.
fn tensorrt_obstacle() -> Option<String> {
    let installed = InstalledTensorRt::find(None);
    let shim = installed.and_then(|installed| ShimDirectories::from_environment().find(installed.version));
    shim.err().map(|error| ErrorChain(&error).to_string())
}

/// Runs `regatta-agent gpus`: prints the GPUs and the reason why TensorRT cannot be used as one line of JSON.
///
/// # Errors
/// When CUDA's driver does not work, or standard output cannot be written.
pub(crate) fn print() -> Result<ExitCode, Failure> {
    let gpus: Vec<GpuFacts> = devices().map_err(Failure::could_not)?.iter().map(facts).collect();
    let obstacle = if gpus.is_empty() {
        None
    } else {
        tensorrt_obstacle()
    };
    let mut out = io::stdout().lock();
    // Start a new line, because the driver may have printed an unfinished one.
    writeln!(out)
        .and_then(|()| serde_json::to_writer(&mut out, &(gpus, obstacle)).map_err(io::Error::from))
        .and_then(|()| writeln!(out))
        .context("the GPUs cannot be printed")?;
    Ok(ExitCode::Success)
}
