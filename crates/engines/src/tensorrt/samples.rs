//! Memory for loaded samples that the device can read directly. This avoids the copy on chips whose GPU shares the
//! host's memory.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use regatta_cuda::{Context, HostMemory};

/// Allocator for loaded samples, with the device address of the memory. The address is the same for all GPUs: CUDA
/// guarantees this for portable host memory with unified addressing, which 64-bit Linux always has.
pub struct SharedSamples {
    context: Context,
    host: AtomicUsize,
    bytes: AtomicUsize,
    device: AtomicU64,
}

impl SharedSamples {
    pub(super) fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
            host: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            device: AtomicU64::new(0),
        }
    }

    /// Allocates memory for all loaded samples, which replaces the earlier memory. Returns `None` if there is not
    /// enough.
    pub fn allocate(&self, bytes: usize) -> Option<HostMemory> {
        let memory = HostMemory::new(&self.context, bytes).ok()?;
        // Samples are loaded while nothing computes. The harness's lock orders these stores before the next batch.
        self.host.store(memory.bytes().as_ptr().addr(), Ordering::Relaxed);
        self.bytes.store(memory.bytes().len(), Ordering::Relaxed);
        self.device.store(memory.device_address(), Ordering::Relaxed);
        Some(memory)
    }

    /// Returns the device address of `samples`, if `needed` bytes from their start are within the loaded samples.
    pub fn device_address(&self, samples: &[u8], needed: usize) -> Option<u64> {
        let offset = samples
            .as_ptr()
            .addr()
            .checked_sub(self.host.load(Ordering::Relaxed))?;
        let within = offset.checked_add(needed)? <= self.bytes.load(Ordering::Relaxed);
        within.then(|| self.device.load(Ordering::Relaxed) + offset as u64)
    }
}

#[cfg(test)]
mod tests {
    use regatta_cuda::Driver;

    use super::*;
    use crate::subjects::fake_engine::installation;

    #[test]
    fn only_loaded_samples_have_an_address() {
        let driver = Driver::open_file(&installation().cuda.unwrap()).unwrap();
        let shared = SharedSamples::new(&driver.context(0).unwrap());
        assert_eq!(shared.device_address(&[1, 2], 1), None);
        let memory = shared.allocate(100).unwrap();
        let from = |begin: usize, needed| shared.device_address(&memory.bytes()[begin..], needed);
        assert_eq!(from(0, 100), Some(memory.device_address()));
        assert_eq!(from(60, 40), Some(memory.device_address() + 60));
        assert_eq!(
            from(60, 41),
            None,
            "a batch that is filled up must not read beyond the samples"
        );
        assert_eq!(
            shared.device_address(&[1, 2], 2),
            None,
            "other memory is not a sample"
        );
    }
}
