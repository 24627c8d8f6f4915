//! Reads the facts of the driver and its devices in a separate process before the checks, because a driver may crash or hang during initialisation.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail};
use regatta_cuda::{Driver, DriverOpenError};
use serde::{Deserialize, Serialize};

use crate::{fakes::Fakes, subprocess::Subprocess};

const LIMIT: Duration = Duration::from_secs(60);

/// The driver's version and devices, for the report.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DriverFacts {
    pub(crate) cuda: String,
    pub(crate) gpus: Vec<String>,
}

/// Reads the facts in a separate process.
///
/// # Errors
/// Returns an error of one sentence when this machine has no working driver, or no device.
pub(crate) fn probe(program: &Path, fakes: Option<&Fakes>, work: &Path) -> anyhow::Result<DriverFacts> {
    let outcome = work.join("probe.json");
    let mut command = Command::new(program);
    command
        .arg("probe")
        .arg("--outcome")
        .arg(&outcome)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(fakes) = fakes {
        fakes.apply(&mut command);
    }
    let end = Subprocess::start(&mut command)?.wait(LIMIT)?;
    if let Some(failure) = end.failure(LIMIT) {
        bail!("the CUDA driver cannot be initialised: its process {failure}");
    }
    let outcome = fs::read(&outcome).context("the process of the CUDA driver ended without an outcome")?;
    let facts: Result<DriverFacts, String> = serde_json::from_slice(&outcome)?;
    facts.map_err(anyhow::Error::msg)
}

/// Reads the facts in this process, and writes them, or the reason why that failed, to a file.
pub(crate) fn write(outcome: &Path) -> anyhow::Result<()> {
    let facts = read().map_err(|error| format!("{error:#}"));
    fs::write(outcome, serde_json::to_vec(&facts)?)?;
    Ok(())
}

fn read() -> anyhow::Result<DriverFacts> {
    let driver = match Driver::open() {
        Err(DriverOpenError::Init(error)) => bail!("the CUDA driver cannot be initialised: {error}"),
        opened => opened?,
    };
    let devices = driver.devices()?;
    if devices.is_empty() {
        bail!("the CUDA driver finds no device");
    }
    let gpus = devices.iter().map(|device| {
        let (major, minor) = device.compute_capability;
        let (processors, memory) = (device.multiprocessors, device.memory_bytes >> 20);
        format!(
            "{}, compute {major}.{minor}, {processors} SMs, {memory} MiB",
            device.name
        )
    });
    Ok(DriverFacts {
        cuda: format!("{}.{}", driver.version() / 1000, driver.version() % 1000 / 10),
        gpus: gpus.collect(),
    })
}
