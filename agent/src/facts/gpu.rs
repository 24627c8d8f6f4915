//! What CUDA says of the machine's GPUs. Asked in a process of its own ([`probe`]): a driver that hangs, crashes or keeps memory
//! does so there, and daemon and doctor stay as lean as they are. A process that loads CUDA anyway asks directly ([`ask`]).

use std::{
    env,
    io::{self, Read as _, Write as _},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use regatta_cuda::{Device, Driver};
use regatta_rules::documents::GpuFacts;

use crate::exit::{self, Failure};

/// How long the process may take. A Jetson's driver starts in some tenths of a second.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// Longest answer that is read, which is some hundred GPUs.
const MOST: u64 = 64 << 10;

/// The GPUs in the driver's order; none without a driver.
pub(crate) fn ask() -> Vec<GpuFacts> {
    let devices = Driver::open().and_then(|driver| driver.devices());
    devices.unwrap_or_default().iter().map(facts).collect()
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

/// The same, from `regatta-agent gpus` as a process of its own; none where that fails or takes too long.
pub(crate) fn probe() -> Vec<GpuFacts> {
    answer().unwrap_or_else(|error| {
        tracing::warn!("the GPUs could not be asked for: {error}");
        Vec::new()
    })
}

fn answer() -> io::Result<Vec<GpuFacts>> {
    let mut child = Command::new(env::current_exe()?)
        .arg("gpus")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    wait(&mut child)?;
    let mut text = Vec::new();
    if let Some(out) = child.stdout.take() {
        out.take(MOST).read_to_end(&mut text)?;
    }
    Ok(serde_json::from_slice(&text)?)
}

/// Waits until the process ends, and ends it when it takes too long.
fn wait(child: &mut Child) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    while child.try_wait()?.is_none() {
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// `regatta-agent gpus`: the answer as JSON.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn print() -> Result<u8, Failure> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &ask())
        .map_err(io::Error::from)
        .and_then(|()| writeln!(out))
        .context("the GPUs cannot be printed")?;
    Ok(exit::OK)
}
