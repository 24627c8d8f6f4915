//! Device memory, and pinned host memory that the device can access.

use std::{
    ffi::c_void,
    ptr::{self, NonNull},
    slice,
};

use crate::{context::Context, error::CudaError};

/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`: pinned for every context, and mapped into the device's addresses.
const PORTABLE_AND_MAPPED: u32 = 1 | 2;

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: u32 = 2;

/// Device memory. Dropping it frees it.
pub struct DeviceMemory {
    context: Context,
    address: u64,
    bytes: usize,
}

impl DeviceMemory {
    /// Allocates device memory of this many bytes, at least one.
    ///
    /// # Errors
    /// [`CudaError`] of `cuMemAlloc`, for instance when there is not enough memory.
    pub fn new(context: &Context, bytes: usize) -> Result<Self, CudaError> {
        context.bind()?;
        let (mut address, bytes) = (0, bytes.max(1));
        // SAFETY: `address` outlives the call.
        let result = unsafe { (context.functions().cuMemAlloc_v2)(&raw mut address, bytes) };
        context.check("cuMemAlloc", result)?;
        Ok(Self {
            context: context.clone(),
            address,
            bytes,
        })
    }

    /// Returns the memory's address on the device.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Returns the memory's size in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// Returns `false`: there is at least one byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: allocated once, freed once. When the device is lost, its memory is gone as well.
            unsafe { (self.context.functions().cuMemFree_v2)(self.address) };
        }
    }
}

/// Pinned host memory that also has an address on the device. On a chip whose GPU shares the host's memory, the device
/// reads and writes it in place. New memory is zeroed; dropping it frees it.
pub struct HostMemory {
    context: Context,
    host: NonNull<u8>,
    device: u64,
    bytes: usize,
}

// SAFETY: plain memory. The unsafe calls that give it to the device state what their callers guarantee.
unsafe impl Send for HostMemory {}
// SAFETY: shared access only reads.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Allocates pinned host memory of this many zeroed bytes, at least one.
    ///
    /// # Errors
    /// [`CudaError`] of `cuMemHostAlloc`, for instance when there is not enough memory.
    pub fn new(context: &Context, bytes: usize) -> Result<Self, CudaError> {
        context.bind()?;
        let (mut host, mut device, bytes) = (ptr::null_mut::<c_void>(), 0, bytes.max(1));
        // SAFETY: `host` outlives the call.
        let result =
            unsafe { (context.functions().cuMemHostAlloc)(&raw mut host, bytes, PORTABLE_AND_MAPPED) };
        context.check("cuMemHostAlloc", result)?;
        // A driver that reports success without memory is treated as out of memory.
        let pointer =
            NonNull::new(host.cast::<u8>()).ok_or_else(|| context.error("cuMemHostAlloc", OUT_OF_MEMORY))?;
        let mut memory = Self {
            context: context.clone(),
            host: pointer,
            device: 0,
            bytes,
        };
        // SAFETY: `device` outlives the call, and the memory was allocated as mapped.
        let result = unsafe { (context.functions().cuMemHostGetDevicePointer_v2)(&raw mut device, host, 0) };
        context.check("cuMemHostGetDevicePointer", result)?;
        // SAFETY: the driver allocated this many bytes.
        unsafe { ptr::write_bytes(pointer.as_ptr(), 0, bytes) };
        memory.device = device;
        Ok(memory)
    }

    /// Returns the memory's address on the device.
    #[must_use]
    pub const fn device_address(&self) -> u64 {
        self.device
    }

    /// Returns the memory's bytes. Bytes that the device still writes must not be read: see the calls that start such work.
    #[must_use]
    pub const fn bytes(&self) -> &[u8] {
        // SAFETY: the allocation has this many bytes, all initialised, and exists as long as `self`.
        unsafe { slice::from_raw_parts(self.host.as_ptr(), self.bytes) }
    }

    /// Returns the memory's bytes for writing.
    #[must_use]
    pub const fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nothing else on the host has access.
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
