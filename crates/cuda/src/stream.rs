//! Streams, which execute their work in order, and events, which signal that a point in a stream is reached.

use std::{ffi::c_void, hint, ptr};

use cudarc::driver::sys::{CUevent, CUstream};

use crate::{
    context::Context,
    error::CudaError,
    memory::{DeviceMemory, HostMemory},
};

/// `CU_STREAM_NON_BLOCKING`: does not synchronise with the default stream.
const NON_BLOCKING: u32 = 1;
/// `CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING`.
const BLOCKING: u32 = 1 | 2;
/// `CUDA_ERROR_NOT_READY`.
const NOT_READY: u32 = 600;

/// The way in which a thread waits for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitMode {
    /// The thread sleeps. It uses no CPU time and wakes a little later.
    #[default]
    Block,
    /// The thread polls. It wakes soonest and occupies a CPU core.
    Spin,
}

/// A stream. Dropping it destroys it; the device still executes the work in it.
pub struct Stream {
    context: Context,
    raw: CUstream,
}

// SAFETY: any thread may use the driver's streams.
unsafe impl Send for Stream {}
// SAFETY: as above; the driver locks them.
unsafe impl Sync for Stream {}

impl Stream {
    /// Creates a stream.
    ///
    /// # Errors
    /// [`CudaError`] of `cuStreamCreate`.
    pub fn new(context: &Context) -> Result<Self, CudaError> {
        context.bind()?;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` outlives the call.
        let result = unsafe { (context.functions().cuStreamCreate)(&raw mut raw, NON_BLOCKING) };
        context.check("cuStreamCreate", result)?;
        Ok(Self {
            context: context.clone(),
            raw,
        })
    }

    /// Returns the driver's handle (`CUstream`, which equals the runtime's `cudaStream_t`), for TensorRT.
    #[must_use]
    pub const fn as_raw(&self) -> *mut c_void {
        self.raw.cast()
    }

    /// Returns the stream's context.
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// Blocks until the stream has executed all its work.
    ///
    /// # Errors
    /// [`CudaError`] of `cuStreamSynchronize`, or of earlier work.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.context.bind()?;
        // SAFETY: the stream exists.
        let result = unsafe { (self.context.functions().cuStreamSynchronize)(self.raw) };
        self.context.check("cuStreamSynchronize", result)
    }

    /// Makes the stream's later work wait for `event`. The call itself returns at once.
    ///
    /// # Errors
    /// [`CudaError`] of `cuStreamWaitEvent`.
    pub fn wait_for(&self, event: &Event) -> Result<(), CudaError> {
        self.context.bind()?;
        // SAFETY: stream and event exist; the driver keeps what it needs of the event.
        let result = unsafe { (self.context.functions().cuStreamWaitEvent)(self.raw, event.raw, 0) };
        self.context.check("cuStreamWaitEvent", result)
    }

    /// Adds a copy of the first `bytes` of `from` to the start of `to`.
    ///
    /// # Safety
    /// Until the stream has executed the copy, both memories exist and the host does not write to `from`.
    ///
    /// # Errors
    /// [`CudaError`] of `cuMemcpyHtoDAsync`, or of earlier work.
    ///
    /// # Panics
    /// When `bytes` exceeds either memory.
    pub unsafe fn copy_to_device(
        &self,
        to: &DeviceMemory,
        from: &HostMemory,
        bytes: usize,
    ) -> Result<(), CudaError> {
        assert!(
            bytes <= to.len().min(from.bytes().len()),
            "the copy exceeds the memory"
        );
        self.context.bind()?;
        let copy = self.context.functions().cuMemcpyHtoDAsync_v2;
        // SAFETY: the caller guarantees the memories, and both are long enough.
        let result = unsafe { copy(to.address(), from.pointer().cast(), bytes, self.raw) };
        self.context.check("cuMemcpyHtoDAsync", result)
    }

    /// Adds a copy of the first `bytes` of `from` to the start of `to`.
    ///
    /// # Safety
    /// Until the stream has executed the copy, both memories exist and the host does not access `to`.
    ///
    /// # Errors
    /// [`CudaError`] of `cuMemcpyDtoHAsync`, or of earlier work.
    ///
    /// # Panics
    /// When `bytes` exceeds either memory.
    pub unsafe fn copy_to_host(
        &self,
        to: &HostMemory,
        from: &DeviceMemory,
        bytes: usize,
    ) -> Result<(), CudaError> {
        assert!(
            bytes <= from.len().min(to.bytes().len()),
            "the copy exceeds the memory"
        );
        self.context.bind()?;
        let copy = self.context.functions().cuMemcpyDtoHAsync_v2;
        // SAFETY: the caller guarantees the memories, and both are long enough.
        let result = unsafe { copy(to.pointer().cast(), from.address(), bytes, self.raw) };
        self.context.check("cuMemcpyDtoHAsync", result)
    }

    pub(crate) const fn raw(&self) -> CUstream {
        self.raw
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: created once, destroyed once.
            unsafe { (self.context.functions().cuStreamDestroy_v2)(self.raw) };
        }
    }
}

/// An event, which marks a point in a stream. Dropping it destroys it.
pub struct Event {
    context: Context,
    raw: CUevent,
}

// SAFETY: any thread may use the driver's events.
unsafe impl Send for Event {}
// SAFETY: as above; the driver locks them.
unsafe impl Sync for Event {}

impl Event {
    /// Creates an event. It counts as complete until it is recorded.
    ///
    /// # Errors
    /// [`CudaError`] of `cuEventCreate`.
    pub fn new(context: &Context) -> Result<Self, CudaError> {
        context.bind()?;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` outlives the call.
        let result = unsafe { (context.functions().cuEventCreate)(&raw mut raw, BLOCKING) };
        context.check("cuEventCreate", result)?;
        Ok(Self {
            context: context.clone(),
            raw,
        })
    }

    /// Records the event in a stream, after all its present work.
    ///
    /// # Errors
    /// [`CudaError`] of `cuEventRecord`, or of earlier work.
    pub fn record(&self, stream: &Stream) -> Result<(), CudaError> {
        self.context.bind()?;
        // SAFETY: event and stream exist.
        let result = unsafe { (self.context.functions().cuEventRecord)(self.raw, stream.raw()) };
        self.context.check("cuEventRecord", result)
    }

    /// Returns whether the device has executed all work before the event.
    ///
    /// # Errors
    /// [`CudaError`] of that work.
    pub fn is_complete(&self) -> Result<bool, CudaError> {
        self.context.bind()?;
        // SAFETY: the event exists.
        match unsafe { (self.context.functions().cuEventQuery)(self.raw) } {
            NOT_READY => Ok(false),
            result => self.context.check("cuEventQuery", result).map(|()| true),
        }
    }

    /// Waits until the device has executed all work before the event.
    ///
    /// # Errors
    /// [`CudaError`] of that work.
    pub fn wait(&self, mode: WaitMode) -> Result<(), CudaError> {
        match mode {
            WaitMode::Spin => {
                while !self.is_complete()? {
                    hint::spin_loop();
                }
                Ok(())
            }
            WaitMode::Block => {
                self.context.bind()?;
                // SAFETY: the event exists.
                let result = unsafe { (self.context.functions().cuEventSynchronize)(self.raw) };
                self.context.check("cuEventSynchronize", result)
            }
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: created once, destroyed once.
            unsafe { (self.context.functions().cuEventDestroy_v2)(self.raw) };
        }
    }
}
