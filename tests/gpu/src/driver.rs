//! Checks of `regatta-cuda`, the layer over CUDA's driver. The layer does not launch kernels or read times of events, so neither is checked here:
//! TensorRT's engines launch kernels.

pub(crate) mod context;
pub(crate) mod graphs;
pub(crate) mod lanes;
pub(crate) mod memory;
pub(crate) mod streams;

use anyhow::Context as _;
use regatta_cuda::{Context, CudaError, DeviceMemory, Driver, HostMemory, Stream};
use regatta_random::SplitMix64;

const MIB: usize = 1 << 20;

/// Opens the driver and the context of the first device.
fn first_context() -> anyhow::Result<Context> {
    let driver = Driver::open()?;
    driver.context(0).context("the first device has no context")
}

/// Fills memory with bytes that depend on `seed`.
pub(crate) fn fill(bytes: &mut [u8], seed: u64) {
    let mut random = SplitMix64::new(seed);
    for chunk in bytes.chunks_mut(8) {
        let bits = random.bits().to_le_bytes();
        chunk.copy_from_slice(&bits[..chunk.len()]);
    }
}

/// Allocates pinned memory with random content.
fn random_host(context: &Context, bytes: usize, seed: u64) -> Result<HostMemory, CudaError> {
    let mut memory = HostMemory::new(context, bytes)?;
    fill(memory.bytes_mut(), seed);
    Ok(memory)
}

/// Copies bytes to the device and back, and waits for both copies.
fn round_trip(
    stream: &Stream,
    from: &HostMemory,
    device: &DeviceMemory,
    to: &HostMemory,
) -> Result<(), CudaError> {
    let bytes = from.bytes().len();
    // SAFETY: the memories outlive the wait below, which is also done when a call fails.
    let copied = unsafe {
        stream
            .copy_to_device(device, from, bytes)
            .and_then(|()| stream.copy_to_host(to, device, bytes))
    };
    copied.and(stream.synchronize())
}
