//! Several threads, several GPUs, and repeated use.

use std::{thread, time::Instant};

use anyhow::{Context as _, ensure};
use regatta_cuda::{Context, CudaError, DeviceMemory, Driver, Event, Graph, HostMemory, Stream, WaitMode};

use super::{MIB, fill, first_context};
use crate::outcome::{Kit, Outcome};

const LANES: u64 = 6;
const ROUNDS: u64 = 100;

/// Checks that lanes, each with its own thread, stream and memory, do not affect each other.
pub(crate) fn lanes(_: &Kit) -> anyhow::Result<Outcome> {
    let context = first_context()?;
    let begin = Instant::now();
    let contexts: Vec<_> = (0..LANES).map(|_| context.clone()).collect();
    run_lanes(&contexts)?;
    let copies = (2 * LANES * ROUNDS) as f64;
    Ok(
        Outcome::passed(format!("{LANES} threads with {ROUNDS} rounds each")).with(
            "copies of 1 MiB",
            copies / begin.elapsed().as_secs_f64(),
            "1/s",
        ),
    )
}

/// Checks lanes on different GPUs, each with its own context.
pub(crate) fn gpus(_: &Kit) -> anyhow::Result<Outcome> {
    let driver = Driver::open()?;
    let count = driver.devices()?.len();
    if count < 2 {
        return Ok(Outcome::skipped("this machine has one GPU"));
    }
    let contexts: Vec<_> = (0..u32::try_from(count)?)
        .map(|ordinal| driver.context(ordinal))
        .collect::<Result<_, _>>()?;
    run_lanes(&contexts)?;
    // One thread that switches between devices.
    for _ in 0..20 {
        for context in &contexts {
            lane(context, 1, 1)?;
        }
    }
    Ok(Outcome::passed(format!(
        "{count} GPUs, a thread each, then one thread for all"
    )))
}

/// Runs a lane on each context concurrently.
fn run_lanes(contexts: &[Context]) -> anyhow::Result<()> {
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..)
            .zip(contexts)
            .map(|(number, context)| scope.spawn(move || lane(context, number, ROUNDS)))
            .collect();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    for (number, result) in results.into_iter().enumerate() {
        let ended = result.ok().with_context(|| format!("lane {number} panicked"))?;
        ended.with_context(|| format!("lane {number}"))?;
    }
    Ok(())
}

/// Copies new bytes to the device and back in each round, and compares them.
fn lane(context: &Context, number: u64, rounds: u64) -> anyhow::Result<()> {
    let (stream, event) = (Stream::new(context)?, Event::new(context)?);
    let (mut from, to) = (HostMemory::new(context, MIB)?, HostMemory::new(context, MIB)?);
    let device = DeviceMemory::new(context, MIB)?;
    for round in 0..rounds {
        fill(from.bytes_mut(), number << 32 | round);
        let wait = if (number + round).is_multiple_of(2) {
            WaitMode::Block
        } else {
            WaitMode::Spin
        };
        // SAFETY: the memories outlive the wait, which is also done when a call fails.
        let queued = unsafe {
            stream
                .copy_to_device(&device, &from, MIB)
                .and_then(|()| stream.copy_to_host(&to, &device, MIB))
                .and_then(|()| event.record(&stream))
                .and_then(|()| event.wait(wait))
        };
        queued.or_else(|error| stream.synchronize().and(Err(error)))?;
        ensure!(to.bytes() == from.bytes(), "round {round} returned other bytes");
    }
    Ok(())
}

/// The memory that the driver may allocate for itself between two measurements.
const DRIVERS_OWN: usize = 8 * MIB;

/// Checks that the free memory is unchanged after streams, events, graphs and memory were created and dropped many times.
pub(crate) fn leaks(_: &Kit) -> anyhow::Result<Outcome> {
    let context = first_context()?;
    // The driver allocates memory for its own use during the first calls.
    for _ in 0..20 {
        create_and_drop(&context)?;
    }
    let (before, _) = context.memory()?;
    const TIMES: u32 = 300;
    let begin = Instant::now();
    for _ in 0..TIMES {
        create_and_drop(&context)?;
    }
    let each = begin.elapsed().as_secs_f64() * 1e3 / f64::from(TIMES);
    let (after, _) = context.memory()?;
    let lost = before.saturating_sub(after);
    // Each iteration allocates 4 MiB, so a leak in every hundredth one would be noticed. On an integrated GPU, other programs use the memory, too.
    if context.device().integrated && lost > DRIVERS_OWN && lost < 256 * MIB {
        return Ok(Outcome::skipped(format!(
            "{} MiB are missing, but the memory is the host's",
            lost / MIB
        )));
    }
    ensure!(
        lost <= DRIVERS_OWN,
        "{lost} bytes are missing after {TIMES} times"
    );
    Ok(Outcome::passed(format!("{TIMES} times"))
        .with("missing", lost as f64, "bytes")
        .with("each", each, "ms"))
}

fn create_and_drop(context: &Context) -> anyhow::Result<()> {
    let own = context.driver().context(0)?;
    let (stream, event) = (Stream::new(&own)?, Event::new(&own)?);
    let (from, to) = (HostMemory::new(&own, MIB)?, HostMemory::new(&own, MIB)?);
    let device = DeviceMemory::new(&own, 4 * MIB)?;
    let captured = Graph::capture(&stream, || -> Result<(), CudaError> {
        // SAFETY: the memories outlive the launch, because the code below waits for it.
        unsafe {
            stream.copy_to_device(&device, &from, MIB)?;
            stream.copy_to_host(&to, &device, MIB)
        }
    });
    let graph = captured.map_err(anyhow::Error::from_boxed)?;
    // SAFETY: as above.
    let launched = unsafe { graph.launch(&stream) }.and_then(|()| event.record(&stream));
    launched
        .and(event.wait(WaitMode::Block))
        .or_else(|error| stream.synchronize().and(Err(error)))?;
    Ok(())
}
