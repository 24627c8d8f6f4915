//! A context: one batch at a time through an engine. Shapes, addresses, and the work given to a stream; memory and streams
//! are the caller's.

use std::{
    ffi::{CStr, c_void},
    ptr,
    sync::Arc,
};

use crate::{
    engine::Loaded,
    error::RunError,
    face::{ContextHandle, status},
};

/// An execution context. It belongs to one thread at a time, whose CUDA context is the one that it was made in.
pub struct Context {
    loaded: Arc<Loaded>,
    handle: *mut ContextHandle,
}

// SAFETY: TensorRT's contexts may move between threads; `&mut self` keeps them to one at a time.
unsafe impl Send for Context {}

impl Context {
    /// # Safety
    /// `stream` is one of the calling thread's CUDA context, or null, and lives during the call.
    pub(crate) unsafe fn open(
        loaded: &Arc<Loaded>,
        profile: usize,
        stream: *mut c_void,
    ) -> Result<Self, RunError> {
        let profile = i32::try_from(profile).unwrap_or(i32::MAX);
        let mut handle = ptr::null_mut();
        // SAFETY: the engine is open, `handle` outlives the call, and for the stream the caller promises.
        let result =
            unsafe { (loaded.opened.face.context_open)(loaded.handle, profile, stream, &raw mut handle) };
        let context = Self {
            loaded: Arc::clone(loaded),
            handle,
        };
        context.check(result)?;
        Ok(context)
    }

    /// Sets the shape of an input whose first dimension is free.
    ///
    /// # Errors
    /// [`RunError`] when the profile does not have it.
    pub fn set_shape(&mut self, input: &CStr, dims: &[i64]) -> Result<(), RunError> {
        let rank = i32::try_from(dims.len()).unwrap_or(i32::MAX);
        // SAFETY: the context is open; name and dimensions outlive the call.
        let result = unsafe {
            (self.loaded.opened.face.context_shape)(self.handle, input.as_ptr(), dims.as_ptr(), rank)
        };
        self.check(result)
    }

    /// Says where a tensor lies on the device.
    ///
    /// # Errors
    /// [`RunError`] when the engine has no such tensor, or the address does not do.
    pub fn set_address(&mut self, tensor: &CStr, address: u64) -> Result<(), RunError> {
        let address = ptr::without_provenance_mut(usize::try_from(address).unwrap_or(0));
        // SAFETY: the context is open and the name outlives the call; what lies at the address is promised to `enqueue`.
        let result =
            unsafe { (self.loaded.opened.face.context_address)(self.handle, tensor.as_ptr(), address) };
        self.check(result)
    }

    /// Gives a batch to the stream and returns. With shapes and addresses as before it allocates nothing.
    ///
    /// # Safety
    /// `stream` is one of the calling thread's CUDA context. Every tensor has an address, at which as much memory as its
    /// shape needs lives and is not used otherwise until the stream has come so far.
    ///
    /// # Errors
    /// [`RunError`] in TensorRT's words.
    pub unsafe fn enqueue(&mut self, stream: *mut c_void) -> Result<(), RunError> {
        // SAFETY: the context is open, and for the rest the caller promises.
        let result = unsafe { (self.loaded.opened.face.context_enqueue)(self.handle, stream) };
        self.check(result)
    }

    fn check(&self, result: i32) -> Result<(), RunError> {
        match result {
            status::OK => Ok(()),
            _ => Err(RunError(self.loaded.opened.error())),
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: opened once, closed once, before the engine that it holds.
            unsafe { (self.loaded.opened.face.context_close)(self.handle) };
        }
    }
}
