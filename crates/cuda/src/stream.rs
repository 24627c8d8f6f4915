//! Streams, which do what they are given in order, and events, which tell when.

use std::{ffi::c_void, hint, ptr};

use cudarc::driver::sys::{CUevent, CUstream};

use crate::{
    context::Context,
    error::CudaError,
    memory::{DeviceMemory, HostMemory},
};

/// `CU_STREAM_NON_BLOCKING`: waits for nothing on the default stream.
const NON_BLOCKING: u32 = 1;
/// `CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING`.
const BLOCKING: u32 = 1 | 2;
/// `CUDA_ERROR_NOT_READY`.
const NOT_READY: u32 = 600;

/// How a thread waits for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Asleep: leaves the processor to others, and is woken a little later.
    #[default]
    Block,
    /// Asking again and again: quickest, and takes a processor.
    Spin,
}

/// A stream. Destroyed when dropped; what it still has to do is done all the same.
pub struct Stream {
    context: Context,
    raw: CUstream,
}

// SAFETY: the driver's streams may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above; the driver locks on its own.
unsafe impl Sync for Stream {}

impl Stream {
    /// A new stream.
    ///
    /// # Errors
    /// [`CudaError`].
    pub fn new(context: &Context) -> Result<Self, CudaError> {
        context.bind()?;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` outlives the call.
        let made = unsafe { (context.functions().cuStreamCreate)(&raw mut raw, NON_BLOCKING) };
        context.check("cuStreamCreate", made)?;
        Ok(Self {
            context: context.clone(),
            raw,
        })
    }

    /// The stream as CUDA knows it (`CUstream`, which is the runtime's `cudaStream_t`), for TensorRT.
    #[must_use]
    pub const fn as_raw(&self) -> *mut c_void {
        self.raw.cast()
    }

    /// Its context.
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// Waits until all that it was given is done.
    ///
    /// # Errors
    /// [`CudaError`], also of what was given earlier.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.context.bind()?;
        // SAFETY: the stream lives.
        let done = unsafe { (self.context.functions().cuStreamSynchronize)(self.raw) };
        self.context.check("cuStreamSynchronize", done)
    }

    /// What is given to it from now on waits for `event`. Does not wait itself.
    ///
    /// # Errors
    /// [`CudaError`].
    pub fn wait_for(&self, event: &Event) -> Result<(), CudaError> {
        self.context.bind()?;
        // SAFETY: stream and event live; the driver keeps what it needs of the event.
        let given = unsafe { (self.context.functions().cuStreamWaitEvent)(self.raw, event.raw, 0) };
        self.context.check("cuStreamWaitEvent", given)
    }

    /// Copies the first `bytes` of `from` to the beginning of `to`, in its turn.
    ///
    /// # Safety
    /// Until the stream has come so far, both memories live and the host does not write to `from`.
    ///
    /// # Errors
    /// [`CudaError`].
    ///
    /// # Panics
    /// When there is not so much memory.
    pub unsafe fn copy_to_device(
        &self,
        to: &DeviceMemory,
        from: &HostMemory,
        bytes: usize,
    ) -> Result<(), CudaError> {
        assert!(
            bytes <= to.len().min(from.bytes().len()),
            "a copy beyond the memory"
        );
        self.context.bind()?;
        let copy = self.context.functions().cuMemcpyHtoDAsync_v2;
        // SAFETY: the caller's promise, and both are long enough.
        let given = unsafe { copy(to.address(), from.pointer().cast(), bytes, self.raw) };
        self.context.check("cuMemcpyHtoDAsync", given)
    }

    /// Copies the first `bytes` of `from` to the beginning of `to`, in its turn.
    ///
    /// # Safety
    /// Until the stream has come so far, both memories live and the host does not look at `to`.
    ///
    /// # Errors
    /// [`CudaError`].
    ///
    /// # Panics
    /// When there is not so much memory.
    pub unsafe fn copy_to_host(
        &self,
        to: &HostMemory,
        from: &DeviceMemory,
        bytes: usize,
    ) -> Result<(), CudaError> {
        assert!(
            bytes <= from.len().min(to.bytes().len()),
            "a copy beyond the memory"
        );
        self.context.bind()?;
        let copy = self.context.functions().cuMemcpyDtoHAsync_v2;
        // SAFETY: the caller's promise, and both are long enough.
        let given = unsafe { copy(to.pointer().cast(), from.address(), bytes, self.raw) };
        self.context.check("cuMemcpyDtoHAsync", given)
    }

    pub(crate) const fn raw(&self) -> CUstream {
        self.raw
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: made once, destroyed once.
            unsafe { (self.context.functions().cuStreamDestroy_v2)(self.raw) };
        }
    }
}

/// A mark in a stream. Destroyed when dropped.
pub struct Event {
    context: Context,
    raw: CUevent,
}

// SAFETY: the driver's events may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above; the driver locks on its own.
unsafe impl Sync for Event {}

impl Event {
    /// A new event, which counts as reached until it is set.
    ///
    /// # Errors
    /// [`CudaError`].
    pub fn new(context: &Context) -> Result<Self, CudaError> {
        context.bind()?;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` outlives the call.
        let made = unsafe { (context.functions().cuEventCreate)(&raw mut raw, BLOCKING) };
        context.check("cuEventCreate", made)?;
        Ok(Self {
            context: context.clone(),
            raw,
        })
    }

    /// Sets it behind all that `stream` was given so far.
    ///
    /// # Errors
    /// [`CudaError`].
    pub fn record(&self, stream: &Stream) -> Result<(), CudaError> {
        self.context.bind()?;
        // SAFETY: event and stream live.
        let set = unsafe { (self.context.functions().cuEventRecord)(self.raw, stream.raw()) };
        self.context.check("cuEventRecord", set)
    }

    /// Whether the device has come so far.
    ///
    /// # Errors
    /// [`CudaError`] of what was given before it.
    pub fn is_reached(&self) -> Result<bool, CudaError> {
        self.context.bind()?;
        // SAFETY: the event lives.
        match unsafe { (self.context.functions().cuEventQuery)(self.raw) } {
            NOT_READY => Ok(false),
            asked => self.context.check("cuEventQuery", asked).map(|()| true),
        }
    }

    /// Waits until the device has come so far.
    ///
    /// # Errors
    /// [`CudaError`] of what was given before it.
    pub fn wait(&self, wait: Wait) -> Result<(), CudaError> {
        match wait {
            Wait::Spin => {
                while !self.is_reached()? {
                    hint::spin_loop();
                }
                Ok(())
            }
            Wait::Block => {
                self.context.bind()?;
                // SAFETY: the event lives.
                let reached = unsafe { (self.context.functions().cuEventSynchronize)(self.raw) };
                self.context.check("cuEventSynchronize", reached)
            }
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: made once, destroyed once.
            unsafe { (self.context.functions().cuEventDestroy_v2)(self.raw) };
        }
    }
}
