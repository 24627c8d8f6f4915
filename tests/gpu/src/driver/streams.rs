//! Streams, events, and waits with a time limit.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::ensure;
use regatta_cuda::{Context, DeviceMemory, Event, HostMemory, Stream, WaitMode};

use super::{MIB, fill, first_context, random_host};
use crate::outcome::{Kit, Outcome};

/// Large enough to keep the device busy until the host submits the next work.
const LARGE: usize = 32 * MIB;

/// Checks that work in one stream is executed in order: later copies overwrite earlier ones.
pub(crate) fn order(_: &Kit) -> anyhow::Result<Outcome> {
    let context = first_context()?;
    let stream = Stream::new(&context)?;
    let sources: Vec<_> = (0..8)
        .map(|seed| random_host(&context, LARGE, seed))
        .collect::<Result<_, _>>()?;
    let device = DeviceMemory::new(&context, LARGE)?;
    let targets: Vec<_> = (0..8)
        .map(|_| HostMemory::new(&context, LARGE))
        .collect::<Result<_, _>>()?;
    let begin = Instant::now();
    // SAFETY: the memories outlive the wait, which is also done when a call fails.
    let queued = sources.iter().zip(&targets).try_for_each(|(from, to)| unsafe {
        stream.copy_to_device(&device, from, LARGE)?;
        stream.copy_to_host(to, &device, LARGE)
    });
    let queued_after = begin.elapsed();
    queued.and(stream.synchronize())?;
    let done_after = begin.elapsed();
    for (number, (from, to)) in sources.iter().zip(&targets).enumerate() {
        ensure!(
            to.bytes() == from.bytes(),
            "copy {number} of one stream is out of order"
        );
    }
    Ok(Outcome::passed("16 copies over the same memory")
        .with("queued after", queued_after.as_secs_f64() * 1e3, "ms")
        .with("done after", done_after.as_secs_f64() * 1e3, "ms"))
}

/// Checks that a stream waits for the event of another one, and that a thread is woken when the work is done.
pub(crate) fn events(_: &Kit) -> anyhow::Result<Outcome> {
    let context = first_context()?;
    let (writer, reader) = (Stream::new(&context)?, Stream::new(&context)?);
    let (written, read) = (Event::new(&context)?, Event::new(&context)?);
    ensure!(
        written.is_complete()?,
        "an event that was never recorded is not complete"
    );
    let mut from = HostMemory::new(&context, LARGE)?;
    let to = HostMemory::new(&context, LARGE)?;
    let device = DeviceMemory::new(&context, LARGE)?;
    for round in 0..20 {
        fill(from.bytes_mut(), round);
        let wait = if round % 2 == 0 {
            WaitMode::Block
        } else {
            WaitMode::Spin
        };
        // SAFETY: the memories outlive the waits, which are also done when a call fails.
        let queued = unsafe {
            writer
                .copy_to_device(&device, &from, LARGE)
                .and_then(|()| written.record(&writer))
                .and_then(|()| reader.wait_for(&written))
                .and_then(|()| reader.copy_to_host(&to, &device, LARGE))
                .and_then(|()| read.record(&reader))
                .and_then(|()| read.wait(wait))
        };
        let ended = [writer.synchronize(), reader.synchronize()];
        queued?;
        ended.into_iter().collect::<Result<(), _>>()?;
        ensure!(
            written.is_complete()? && read.is_complete()?,
            "an event is not complete after a wait"
        );
        ensure!(
            to.bytes() == from.bytes(),
            "a stream did not wait for another one's event (round {round})"
        );
    }
    let block = wake_up(&context, WaitMode::Block)?;
    let spin = wake_up(&context, WaitMode::Spin)?;
    Ok(Outcome::passed("20 rounds of two streams")
        .with("small copy, thread sleeps", block, "us")
        .with("small copy, thread polls", spin, "us"))
}

/// Measures a copy of one byte with an event and a wait, in microseconds.
fn wake_up(context: &Context, wait: WaitMode) -> anyhow::Result<f64> {
    const ROUNDS: u32 = 500;
    let (stream, event) = (Stream::new(context)?, Event::new(context)?);
    let (from, device) = (HostMemory::new(context, 1)?, DeviceMemory::new(context, 1)?);
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        // SAFETY: the memories outlive the wait, which is also done when a call fails.
        let queued = unsafe { stream.copy_to_device(&device, &from, 1) }.and_then(|()| event.record(&stream));
        queued
            .and(event.wait(wait))
            .or_else(|error| stream.synchronize().and(Err(error)))?;
    }
    Ok(begin.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS))
}

/// Checks that a thread can poll with a deadline while the device works, and that work continues after its stream is dropped.
pub(crate) fn deadlines(_: &Kit) -> anyhow::Result<Outcome> {
    let context = first_context()?;
    let event = Event::new(&context)?;
    let from = random_host(&context, LARGE, 5)?;
    let to = HostMemory::new(&context, LARGE)?;
    let devices = [
        DeviceMemory::new(&context, LARGE)?,
        DeviceMemory::new(&context, LARGE)?,
    ];
    let stream = Stream::new(&context)?;
    // SAFETY: the memories outlive the wait below. When a call fails, the process ends.
    unsafe {
        stream.copy_to_device(&devices[0], &from, LARGE)?;
        for round in 0..200 {
            stream.copy_on_device(&devices[(round + 1) % 2], &devices[round % 2], 0..LARGE)?;
        }
        stream.copy_to_host(&to, &devices[0], LARGE)?;
    }
    event.record(&stream)?;
    let was_busy = !event.is_complete()?;
    drop(stream);
    let begin = Instant::now();
    let limit = Duration::from_secs(30);
    while !event.is_complete()? {
        if begin.elapsed() > limit {
            // Memory that the device may still use is not freed.
            std::process::abort();
        }
        thread::sleep(Duration::from_micros(200));
    }
    ensure!(to.bytes() == from.bytes(), "work was lost with its stream");
    let detail = if was_busy {
        "the event was open when the stream was dropped"
    } else {
        "the device was done at once"
    };
    Ok(Outcome::passed(detail).with("work after the drop", begin.elapsed().as_secs_f64() * 1e3, "ms"))
}
