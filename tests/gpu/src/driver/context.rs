//! Devices and contexts.

use std::thread;

use anyhow::{Context as _, bail, ensure};
use regatta_cuda::{DeviceMemory, Driver, DriverOpenError};

use super::{MIB, first_context};
use crate::outcome::{Kit, Outcome};

/// Checks that every device has a name, processors and memory.
pub(crate) fn facts(_: &Kit) -> anyhow::Result<Outcome> {
    let driver = Driver::open()?;
    let devices = driver.devices()?;
    ensure!(!devices.is_empty(), "the driver finds no device");
    let mut described = Vec::new();
    for (ordinal, device) in (0..).zip(&devices) {
        ensure!(!device.name.is_empty(), "device {ordinal} has no name");
        ensure!(
            device.compute_capability.0 > 0,
            "device {ordinal} has no compute capability"
        );
        ensure!(
            device.multiprocessors > 0,
            "device {ordinal} has no multiprocessors"
        );
        let (free, total) = driver.context(ordinal)?.memory()?;
        let of_device = usize::try_from(device.memory_bytes)?;
        ensure!(
            free <= total && total <= of_device,
            "device {ordinal} has {of_device} bytes, but its context {free} free of {total}"
        );
        let (major, minor) = device.compute_capability;
        described.push(format!("{} ({major}.{minor})", device.name));
    }
    let first = &devices[0];
    Ok(Outcome::passed(described.join(", "))
        .with("multiprocessors", f64::from(first.multiprocessors), "count")
        .with("memory", first.memory_bytes as f64 / MIB as f64, "MiB"))
}

/// Checks that the primary context is shared, that any thread can bind it, and that a device that does not exist is an error.
pub(crate) fn contexts(_: &Kit) -> anyhow::Result<Outcome> {
    let context = first_context()?;
    let driver = context.driver().clone();
    let found = u32::try_from(driver.devices()?.len())?;
    match driver.context(found).map(drop) {
        Err(DriverOpenError::NoDevice { ordinal, .. }) => ensure!(ordinal == found),
        other => bail!("device {found} does not exist, but its context gave {other:?}"),
    }
    for _ in 0..20 {
        let second = driver.context(0)?;
        let memory = DeviceMemory::new(&second, MIB)?;
        drop(second);
        // The memory keeps its context alive.
        drop(memory);
    }
    let results: Vec<_> = thread::scope(|scope| {
        let context = &context;
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(move || {
                    context.bind()?;
                    DeviceMemory::new(context, MIB).map(drop)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect()
    });
    for result in results {
        let allocated = result.ok().context("a thread with the context panicked")?;
        allocated.context("a second thread cannot use the context")?;
    }
    // The memory is freed by a thread that has never bound the context.
    let memory = DeviceMemory::new(&context, MIB)?;
    let freed = thread::scope(|scope| scope.spawn(move || drop(memory)).join());
    ensure!(freed.is_ok(), "a thread could not free memory of another one");
    context.memory()?;
    Ok(Outcome::passed("20 more contexts, 8 threads"))
}
