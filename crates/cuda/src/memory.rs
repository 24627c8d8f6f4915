//! Memory of the device, and memory of the host that the device can reach.

use std::{
    ffi::c_void,
    ptr::{self, NonNull},
    slice,
};

use crate::{context::Context, error::CudaError};

/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`: for every context, and with an address on the device.
const PORTABLE_AND_MAPPED: u32 = 1 | 2;

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: u32 = 2;

/// Memory on the device. Given back when dropped.
pub struct DeviceMemory {
    context: Context,
    address: u64,
    bytes: usize,
}

impl DeviceMemory {
    /// So many bytes, at least one.
    ///
    /// # Errors
    /// [`CudaError`], also when there is not enough.
    pub fn new(context: &Context, bytes: usize) -> Result<Self, CudaError> {
        context.bind()?;
        let (mut address, bytes) = (0, bytes.max(1));
        // SAFETY: `address` outlives the call.
        let given = unsafe { (context.functions().cuMemAlloc_v2)(&raw mut address, bytes) };
        context.check("cuMemAlloc", given)?;
        Ok(Self {
            context: context.clone(),
            address,
            bytes,
        })
    }

    /// Where it lies on the device.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Its size in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// Never: there is at least one byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: allocated once, freed once. A lost device takes its memory with it.
            unsafe { (self.context.functions().cuMemFree_v2)(self.address) };
        }
    }
}

/// Host memory that is never paged out, with an address on the device as well: on a chip whose GPU shares the host's
/// memory the device works in place. Blank at first, given back when dropped.
pub struct HostMemory {
    context: Context,
    host: NonNull<u8>,
    device: u64,
    bytes: usize,
}

// SAFETY: plain memory; what the device does with it is the promise of the unsafe calls that hand it over.
unsafe impl Send for HostMemory {}
// SAFETY: shared access only reads.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// So many bytes, at least one.
    ///
    /// # Errors
    /// [`CudaError`], also when there is not enough.
    pub fn new(context: &Context, bytes: usize) -> Result<Self, CudaError> {
        context.bind()?;
        let (mut host, mut device, bytes) = (ptr::null_mut::<c_void>(), 0, bytes.max(1));
        // SAFETY: `host` outlives the call.
        let given =
            unsafe { (context.functions().cuMemHostAlloc)(&raw mut host, bytes, PORTABLE_AND_MAPPED) };
        context.check("cuMemHostAlloc", given)?;
        // A driver that succeeds with nothing has as good as none left.
        let place =
            NonNull::new(host.cast::<u8>()).ok_or_else(|| context.error("cuMemHostAlloc", OUT_OF_MEMORY))?;
        let mut memory = Self {
            context: context.clone(),
            host: place,
            device: 0,
            bytes,
        };
        // SAFETY: `device` outlives the call, and the memory was allocated as mapped.
        let mapped = unsafe { (context.functions().cuMemHostGetDevicePointer_v2)(&raw mut device, host, 0) };
        context.check("cuMemHostGetDevicePointer", mapped)?;
        // SAFETY: the driver gave so many bytes.
        unsafe { ptr::write_bytes(place.as_ptr(), 0, bytes) };
        memory.device = device;
        Ok(memory)
    }

    /// Where it lies for the device.
    #[must_use]
    pub const fn device_address(&self) -> u64 {
        self.device
    }

    /// What it holds. Nothing that the device still writes may be looked at: see the calls that start such work.
    #[must_use]
    pub const fn bytes(&self) -> &[u8] {
        // SAFETY: so many bytes, all written at least once, for as long as `self` lives.
        unsafe { slice::from_raw_parts(self.host.as_ptr(), self.bytes) }
    }

    /// What it holds, to be written.
    #[must_use]
    pub const fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else on the host has access.
        unsafe { slice::from_raw_parts_mut(self.host.as_ptr(), self.bytes) }
    }

    pub(crate) const fn pointer(&self) -> *mut u8 {
        self.host.as_ptr()
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: allocated once, freed once.
            unsafe { (self.context.functions().cuMemFreeHost)(self.host.as_ptr().cast()) };
        }
    }
}
