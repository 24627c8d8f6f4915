//! A tensor's memory: where the host writes or reads it, and where the device does.

use regatta_cuda::{Context, CudaError, DeviceMemory, HostMemory, Stream};

/// Memory of one tensor.
pub(super) struct Buffer {
    host: HostMemory,
    /// Where the device has memory of its own that is copied to or from.
    device: Option<DeviceMemory>,
}

impl Buffer {
    /// So many bytes. With `direct` the device works in the host's memory.
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

    /// Where it lies for the device.
    pub(super) fn address(&self) -> u64 {
        self.device
            .as_ref()
            .map_or(self.host.device_address(), DeviceMemory::address)
    }

    /// The host's side. Only while no stream has work with it.
    pub(super) const fn bytes(&self) -> &[u8] {
        self.host.bytes()
    }

    /// The host's side, to be written. Only while no stream has work with it.
    pub(super) const fn bytes_mut(&mut self) -> &mut [u8] {
        self.host.bytes_mut()
    }

    /// Has the first `bytes` brought to the device, where they are not there anyway.
    ///
    /// # Safety
    /// Until the stream has come so far, the buffer lives and its host's side is not written.
    pub(super) unsafe fn bring(&self, stream: &Stream, bytes: usize) -> Result<(), CudaError> {
        match &self.device {
            // SAFETY: the caller's promise.
            Some(device) => unsafe { stream.copy_to_device(device, &self.host, bytes) },
            None => Ok(()),
        }
    }

    /// Has the first `bytes` fetched from the device, where they are not here anyway.
    ///
    /// # Safety
    /// Until the stream has come so far, the buffer lives and its host's side is not looked at.
    pub(super) unsafe fn fetch(&self, stream: &Stream, bytes: usize) -> Result<(), CudaError> {
        match &self.device {
            // SAFETY: the caller's promise.
            Some(device) => unsafe { stream.copy_to_host(&self.host, device, bytes) },
            None => Ok(()),
        }
    }
}
