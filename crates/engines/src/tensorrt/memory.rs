//! The memory of a tensor on the host and on the device.

use regatta_cuda::{Context, CudaError, DeviceMemory, HostMemory, Stream};

/// The memory of one tensor.
pub(super) struct Buffer {
    host: HostMemory,
    /// The device's copy of the memory. `None` if the device works in host memory.
    device: Option<DeviceMemory>,
}

impl Buffer {
    /// Allocates `bytes` bytes. With `direct`, the device works in host memory.
    ///
    /// # Errors
    /// [`CudaError`].
    pub(super) fn new(context: &Context, bytes: usize, direct: bool) -> Result<Self, CudaError> {
        Ok(Self {
            host: HostMemory::new(context, bytes)?,
            device: if direct {
                None
            } else {
                Some(DeviceMemory::new(context, bytes)?)
            },
        })
    }

    /// Returns the device address.
    pub(super) fn address(&self) -> u64 {
        self.device
            .as_ref()
            .map_or(self.host.device_address(), DeviceMemory::address)
    }

    /// Returns the host's memory. Only valid while no stream uses it.
    pub(super) const fn bytes(&self) -> &[u8] {
        self.host.bytes()
    }

    /// Returns the host's memory for writing. Only valid while no stream uses it.
    pub(super) const fn bytes_mut(&mut self) -> &mut [u8] {
        self.host.bytes_mut()
    }

    /// Enqueues a copy of the first `bytes` bytes to the device, if it has separate memory.
    ///
    /// # Safety
    /// Until the stream has completed the copy, the buffer must live and its host memory must not be written.
    pub(super) unsafe fn bring(&self, stream: &Stream, bytes: usize) -> Result<(), CudaError> {
        match &self.device {
            // SAFETY: the caller guarantees it.
            Some(device) => unsafe { stream.copy_to_device(device, &self.host, bytes) },
            None => Ok(()),
        }
    }

    /// Enqueues a copy of the first `bytes` bytes from the device, if it has separate memory.
    ///
    /// # Safety
    /// Until the stream has completed the copy, the buffer must live and its host memory must not be read.
    pub(super) unsafe fn fetch(&self, stream: &Stream, bytes: usize) -> Result<(), CudaError> {
        match &self.device {
            // SAFETY: the caller guarantees it.
            Some(device) => unsafe { stream.copy_to_host(&self.host, device, bytes) },
            None => Ok(()),
        }
    }
}
