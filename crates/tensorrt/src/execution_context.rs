//! An execution context, which runs one batch at a time through an engine: sets shapes and addresses, and enqueues the work.
//! The caller owns memory and streams.

use std::{
    ffi::{CStr, c_void},
    ptr,
    sync::Arc,
};

use crate::{
    engine::LoadedEngine,
    error::ExecutionError,
    ffi::{ContextHandle, status},
};

/// A TensorRT execution context. One thread at a time may use it, with the CUDA context in which it was created.
pub struct ExecutionContext {
    engine: Arc<LoadedEngine>,
    handle: *mut ContextHandle,
}

// SAFETY: TensorRT's contexts may move between threads; `&mut self` allows one thread at a time.
unsafe impl Send for ExecutionContext {}

impl ExecutionContext {
    /// Creates a context for an optimisation profile.
    ///
    /// # Safety
    /// `stream` belongs to the calling thread's CUDA context, or is null, and exists during the call.
    pub(crate) unsafe fn open(
        engine: &Arc<LoadedEngine>,
        profile: usize,
        stream: *mut c_void,
    ) -> Result<Self, ExecutionError> {
        let profile = i32::try_from(profile).unwrap_or(i32::MAX);
        let mut handle = ptr::null_mut();
        // SAFETY: the engine is open, `handle` outlives the call, and the caller guarantees the stream.
        let result = unsafe {
            (engine.library.functions.context_open)(engine.handle, profile, stream, &raw mut handle)
        };
        let context = Self {
            engine: Arc::clone(engine),
            handle,
        };
        context.check(result)?;
        Ok(context)
    }

    /// Sets the shape of an input with a dynamic first dimension.
    ///
    /// # Errors
    /// [`ExecutionError`] when the profile does not allow the shape.
    pub fn set_shape(&mut self, input: &CStr, dims: &[i64]) -> Result<(), ExecutionError> {
        let rank = i32::try_from(dims.len()).unwrap_or(i32::MAX);
        // SAFETY: the context is open; name and dimensions outlive the call.
        let result = unsafe {
            (self.engine.library.functions.context_shape)(self.handle, input.as_ptr(), dims.as_ptr(), rank)
        };
        self.check(result)
    }

    /// Sets a tensor's address on the device.
    ///
    /// # Errors
    /// [`ExecutionError`] when the engine does not have the tensor, or the address is invalid.
    pub fn set_address(&mut self, tensor: &CStr, address: u64) -> Result<(), ExecutionError> {
        let address = ptr::without_provenance_mut(usize::try_from(address).unwrap_or(0));
        // SAFETY: the context is open and the name outlives the call; callers of `enqueue` guarantee the memory.
        let result =
            unsafe { (self.engine.library.functions.context_address)(self.handle, tensor.as_ptr(), address) };
        self.check(result)
    }

    /// Enqueues a batch in the stream and returns. Allocates nothing while shapes and addresses stay the same.
    ///
    /// # Safety
    /// `stream` belongs to the calling thread's CUDA context. Every tensor has an address with as much memory as its shape
    /// needs. That memory exists, and nothing else uses it, until the stream has executed the batch.
    ///
    /// # Errors
    /// [`ExecutionError`] with TensorRT's message.
    pub unsafe fn enqueue(&mut self, stream: *mut c_void) -> Result<(), ExecutionError> {
        // SAFETY: the context is open, and the caller guarantees the rest.
        let result = unsafe { (self.engine.library.functions.context_enqueue)(self.handle, stream) };
        self.check(result)
    }

    fn check(&self, result: i32) -> Result<(), ExecutionError> {
        match result {
            status::OK => Ok(()),
            _ => Err(ExecutionError(self.engine.library.error())),
        }
    }
}

impl Drop for ExecutionContext {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: opened once, closed once, before its engine.
            unsafe { (self.engine.library.functions.context_close)(self.handle) };
        }
    }
}
