//! Pinned and device memory, and copies between them.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use regatta_cuda::{CudaError, DeviceMemory, HostMemory, RowCopy, Stream};

use super::{MIB, fill, first_context, random_host, round_trip};
use crate::outcome::{Kit, Outcome};

const SIZES: [usize; 14] = [
    1,
    2,
    3,
    4,
    63,
    255,
    256,
    257,
    4095,
    4096,
    65_537,
    MIB - 1,
    MIB + 3,
    16 * MIB,
];
/// The number of bytes in the copies whose speed is measured.
const LARGE: usize = 64 * MIB;
const REPETITIONS: u32 = 10;

/// Checks that pinned memory is zeroed, writable, separate from other memory, and has an address on the device.
pub(crate) fn pinned(_: &Kit) -> anyhow::Result<Outcome> {
    let context = first_context()?;
    let mut memories = Vec::new();
    for (seed, size) in (0..).zip(SIZES) {
        let mut memory = HostMemory::new(&context, size)?;
        ensure!(
            memory.bytes().len() == size,
            "{size} bytes became {}",
            memory.bytes().len()
        );
        ensure!(
            memory.bytes().iter().all(|&byte| byte == 0),
            "{size} bytes are not zeroed"
        );
        ensure!(
            memory.device_address() != 0,
            "{size} bytes have no address on the device"
        );
        fill(memory.bytes_mut(), seed);
        memories.push(memory);
    }
    for (seed, memory) in (0..).zip(&memories) {
        let mut expected = vec![0; memory.bytes().len()];
        fill(&mut expected, seed);
        ensure!(
            memory.bytes() == expected,
            "memories of {} bytes overlap",
            expected.len()
        );
    }
    Ok(Outcome::passed(format!("{} sizes up to {} MiB", SIZES.len(), 16)))
}

/// Checks that bytes arrive unchanged in both directions, for every size.
pub(crate) fn copies(_: &Kit) -> anyhow::Result<Outcome> {
    let context = first_context()?;
    let stream = Stream::new(&context)?;
    for (seed, size) in (1..).zip(SIZES) {
        let from = random_host(&context, size, seed)?;
        // One more byte, which no copy may change.
        let mut to = HostMemory::new(&context, size + 1)?;
        to.bytes_mut()[size] = 0xA5;
        let device = DeviceMemory::new(&context, size)?;
        round_trip(&stream, &from, &device, &to)?;
        ensure!(
            to.bytes()[..size] == *from.bytes(),
            "{size} bytes were changed by copies"
        );
        ensure!(to.bytes()[size] == 0xA5, "a copy of {size} bytes wrote one more");
    }
    let from = random_host(&context, LARGE, 99)?;
    let to = HostMemory::new(&context, LARGE)?;
    let device = DeviceMemory::new(&context, LARGE)?;
    round_trip(&stream, &from, &device, &to)?;
    ensure!(to.bytes() == from.bytes(), "{LARGE} bytes were changed by copies");
    // SAFETY: the memories outlive the synchronisation in `speed`.
    let up = speed(&stream, || unsafe {
        stream.copy_to_device(&device, &from, LARGE)
    })?;
    // SAFETY: as above, and the host does not access the memory before.
    let down = speed(&stream, || unsafe { stream.copy_to_host(&to, &device, LARGE) })?;
    Ok(Outcome::passed(format!("{} sizes up to 64 MiB", SIZES.len() + 1))
        .with("host to device", up, "GB/s")
        .with("device to host", down, "GB/s"))
}

/// Measures a copy of [`LARGE`] bytes in GB/s. Waits for the stream even when a call fails.
fn speed(stream: &Stream, copy: impl Fn() -> Result<(), CudaError>) -> Result<f64, CudaError> {
    let begin = Instant::now();
    let queued = (0..REPETITIONS).try_for_each(|_| copy());
    queued.and(stream.synchronize())?;
    let bytes = LARGE as f64 * f64::from(REPETITIONS);
    Ok(bytes / begin.elapsed().as_secs_f64() / 1e9)
}

/// Checks that memset, copies of ranges and copies of rows change exactly the bytes that they should.
pub(crate) fn ranges(_: &Kit) -> anyhow::Result<Outcome> {
    const BYTES: usize = 70_001;
    let context = first_context()?;
    let stream = Stream::new(&context)?;
    let (first, second) = (random_host(&context, BYTES, 1)?, random_host(&context, BYTES, 2)?);
    let to = HostMemory::new(&context, BYTES)?;
    let (source, target) = (
        DeviceMemory::new(&context, BYTES)?,
        DeviceMemory::new(&context, BYTES)?,
    );
    let mut steps = 0;
    for range in [
        0..1,
        1..2,
        3..259,
        255..4097,
        4096..65_536,
        0..BYTES,
        BYTES - 1..BYTES,
        7..7,
    ] {
        for rows in row_copies() {
            let mut expected = second.bytes().to_vec();
            expected[range.clone()].copy_from_slice(&first.bytes()[range.clone()]);
            let zeros = range.start / 2..range.start / 2 + range.len().min(100) / 2;
            expected[zeros.clone()].fill(0);
            for row in 0..rows.rows {
                let (from, to) = (
                    row * rows.source_pitch,
                    rows.target_offset + row * rows.target_pitch,
                );
                expected[to..to + rows.width].copy_from_slice(&first.bytes()[from..from + rows.width]);
            }
            // SAFETY: the memories outlive the wait below, which is also done when a call fails.
            let queued = unsafe {
                stream
                    .copy_to_device(&source, &first, BYTES)
                    .and_then(|()| stream.copy_to_device(&target, &second, BYTES))
                    .and_then(|()| {
                        if range.is_empty() {
                            Ok(())
                        } else {
                            stream.copy_on_device(&target, &source, range.clone())
                        }
                    })
                    .and_then(|()| {
                        if zeros.is_empty() {
                            Ok(())
                        } else {
                            stream.clear(&target, zeros.clone())
                        }
                    })
                    .and_then(|()| stream.copy_rows(&target, &source, &rows))
                    .and_then(|()| stream.copy_to_host(&to, &target, BYTES))
            };
            queued.and(stream.synchronize())?;
            let wrong = to
                .bytes()
                .iter()
                .zip(&expected)
                .position(|(got, correct)| got != correct);
            ensure!(
                wrong.is_none(),
                "byte {wrong:?} is wrong after range {range:?} and {rows:?}"
            );
            steps += 1;
        }
    }
    Ok(Outcome::passed(format!(
        "{steps} combinations of ranges and rows"
    )))
}

fn row_copies() -> [RowCopy; 4] {
    let rows = |width, rows, source_pitch, target_offset, target_pitch| RowCopy {
        width,
        rows,
        source_pitch,
        target_offset,
        target_pitch,
    };
    [
        rows(1, 1, 1, 0, 1),
        rows(3, 5, 7, 1, 11),
        rows(512, 64, 512, 256, 1024),
        rows(129, 200, 300, 33, 131),
    ]
}

/// Checks that a request for more memory than is available fails with the right error, and that the device works afterwards.
pub(crate) fn out_of_memory(_: &Kit) -> anyhow::Result<Outcome> {
    let context = first_context()?;
    let stream = Stream::new(&context)?;
    let total = usize::try_from(context.device().memory_bytes)?;
    for attempt in 0..3 {
        let refused = DeviceMemory::new(&context, total + LARGE);
        let error = refused
            .map(drop)
            .err()
            .context("more memory than the device has was allocated")?;
        ensure!(error.is_out_of_memory(), "not an out-of-memory error: {error}");
        ensure!(!error.is_sticky(), "the driver is lost after: {error}");
        let from = random_host(&context, MIB, attempt)?;
        let (device, to) = (DeviceMemory::new(&context, MIB)?, HostMemory::new(&context, MIB)?);
        round_trip(&stream, &from, &device, &to).context("after a refused allocation")?;
        ensure!(
            to.bytes() == from.bytes(),
            "copies are wrong after a refused allocation"
        );
    }
    if context.device().integrated {
        return Ok(Outcome::passed(
            "3 requests for more than the total memory; not filled, because it is the host's",
        ));
    }
    // Filling the memory of a discrete GPU does not affect the machine.
    let mut held = Vec::new();
    let block = (total / 16).max(MIB);
    let error = loop {
        match DeviceMemory::new(&context, block) {
            Ok(memory) => held.push(memory),
            Err(error) => break error,
        }
        ensure!(held.len() <= 16, "more memory was allocated than the device has");
    };
    ensure!(
        error.is_out_of_memory() && !error.is_sticky(),
        "not an out-of-memory error: {error}"
    );
    let blocks = held.len();
    drop(held);
    DeviceMemory::new(&context, block).context("after all memory was freed")?;
    Ok(Outcome::passed(format!(
        "3 requests for more than the total memory; filled with {blocks} of 16 blocks"
    )))
}
