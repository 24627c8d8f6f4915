//! Graphs: captured once, launched many times. The engines instantiate graphs and never update them.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use regatta_cuda::{DeviceMemory, Event, Graph, HostMemory, Stream, WaitMode};

use super::{MIB, fill, first_context};
use crate::outcome::{Kit, Outcome};

const LAUNCHES: u32 = 500;

/// Checks that captured work is not executed before a launch, that every launch executes it with the current data, and that a failed capture leaves
/// the stream usable.
pub(crate) fn graphs(_: &Kit) -> anyhow::Result<Outcome> {
    let context = first_context()?;
    let stream = Stream::new(&context)?;
    let mut from = HostMemory::new(&context, MIB)?;
    let to = HostMemory::new(&context, MIB)?;
    let devices = [
        DeviceMemory::new(&context, MIB)?,
        DeviceMemory::new(&context, MIB)?,
    ];
    // SAFETY: the memories outlive the graph's launches, and are only accessed between them.
    let graph = Graph::capture(&stream, || unsafe {
        stream.copy_to_device(&devices[0], &from, MIB)?;
        stream.clear(&devices[0], 0..256)?;
        stream.copy_on_device(&devices[1], &devices[0], 0..MIB)?;
        stream.copy_to_host(&to, &devices[1], MIB)
    })
    .map_err(anyhow::Error::from_boxed)?;
    ensure!(
        graph.nodes() == 4,
        "4 steps became a graph of {} nodes",
        graph.nodes()
    );
    stream.synchronize()?;
    ensure!(
        to.bytes().iter().all(|&byte| byte == 0),
        "captured work was executed"
    );
    for round in 0..10 {
        fill(from.bytes_mut(), round);
        // SAFETY: as above; the wait is also done when the launch fails.
        unsafe { graph.launch(&stream) }.and(stream.synchronize())?;
        ensure!(
            to.bytes()[..256].iter().all(|&byte| byte == 0),
            "a graph left out its zeros"
        );
        ensure!(
            to.bytes()[256..] == from.bytes()[256..],
            "launch {round} of a graph gave wrong bytes"
        );
    }

    let refused = Graph::capture(&stream, || stream.synchronize());
    let error = refused.map(drop).err().context("a wait was captured")?;
    let abandoned = Graph::capture(&stream, || Err::<(), _>("abandoned"));
    ensure!(abandoned.is_err(), "a capture whose work failed gave a graph");
    // SAFETY: as above.
    unsafe { graph.launch(&stream) }
        .and(stream.synchronize())
        .context("after a capture that failed")?;

    let event = Event::new(&context)?;
    let begin = Instant::now();
    for _ in 0..LAUNCHES {
        // SAFETY: as above; the wait is also done when the launch fails.
        let launched = unsafe { graph.launch(&stream) }.and_then(|()| event.record(&stream));
        launched
            .and(event.wait(WaitMode::Spin))
            .or_else(|error| stream.synchronize().and(Err(error)))?;
    }
    let each = begin.elapsed().as_secs_f64() * 1e6 / f64::from(LAUNCHES);
    Ok(
        Outcome::passed(format!("510 launches; refused capture: {error}")).with(
            "launch of four steps of 1 MiB",
            each,
            "us",
        ),
    )
}
