//! A loaded TensorRT engine: its inputs and outputs, profiles and layers. Its execution is in `execution_context`.

use std::{
    ffi::{CString, c_void},
    ptr,
    sync::Arc,
};

use regatta_types::layout::Layout;
use serde::{Deserialize, Serialize};

use crate::{
    error::{BuildError, ExecutionError},
    execution_context::ExecutionContext,
    ffi::{self, EngineHandle},
    library::{OpenLibrary, text},
};

/// An input or output of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tensor {
    /// The tensor's name.
    pub name: String,
    /// Whether the tensor is an input.
    pub input: bool,
    /// The element type, such as `fp32`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The dimensions in the network's order, whatever the layout; -1 for a dynamic one.
    pub dims: Vec<i64>,
    /// The memory layout, such as `linear`.
    #[serde(default = "linear")]
    pub format: String,
}

/// A loaded engine. Clones share it.
#[derive(Clone)]
pub struct Engine(Arc<LoadedEngine>);

/// The shim's engine, shared by its contexts.
pub(crate) struct LoadedEngine {
    pub(crate) library: Arc<OpenLibrary>,
    pub(crate) handle: *mut EngineHandle,
}

// SAFETY: TensorRT allows the calls of this file from several threads at once.
unsafe impl Send for LoadedEngine {}
// SAFETY: as above.
unsafe impl Sync for LoadedEngine {}

impl Engine {
    pub(crate) fn open(
        library: &Arc<OpenLibrary>,
        plan: &[u8],
        dla_core: Option<u32>,
    ) -> Result<Self, BuildError> {
        let core = dla_core.map_or(-1, |core| i32::try_from(core).unwrap_or(i32::MAX));
        let mut handle = ptr::null_mut();
        // SAFETY: the shim only reads the plan during the call; `handle` outlives it.
        let result = unsafe {
            (library.functions.engine_open)(
                library.handle,
                plan.as_ptr().cast(),
                plan.len(),
                core,
                &raw mut handle,
            )
        };
        library.check(result)?;
        Ok(Self(Arc::new(LoadedEngine {
            library: Arc::clone(library),
            handle,
        })))
    }

    /// Returns inputs and outputs in the engine's order.
    ///
    /// # Errors
    /// [`BuildError::Plan`] with TensorRT's message.
    pub fn tensors(&self) -> Result<Vec<Tensor>, BuildError> {
        let functions = &self.0.library.functions;
        // SAFETY: the engine is open.
        let count = unsafe { (functions.engine_tensors)(self.0.handle) };
        let tensor = |number| {
            let mut tensor = ffi::RawTensor {
                name: ptr::null(),
                is_input: 0,
                kind: 0,
                rank: 0,
                dims: [0; 8],
                format: 0,
            };
            // SAFETY: the engine is open and `tensor` outlives the call.
            let result = unsafe { (functions.engine_tensor)(self.0.handle, number, &raw mut tensor) };
            self.0.library.check(result)?;
            let rank = usize::try_from(tensor.rank).unwrap_or(0).min(tensor.dims.len());
            Ok(Tensor {
                name: text(tensor.name),
                input: tensor.is_input != 0,
                kind: data_type(tensor.kind),
                dims: tensor.dims[..rank].to_vec(),
                format: layout(tensor.format),
            })
        };
        (0..count).map(tensor).collect()
    }

    /// Returns the number of optimisation profiles: the contexts with dynamic shapes that can run at the same time.
    #[must_use]
    pub fn profiles(&self) -> usize {
        // SAFETY: the engine is open.
        let profiles = unsafe { (self.0.library.functions.engine_profiles)(self.0.handle) };
        usize::try_from(profiles).unwrap_or(0)
    }

    /// Returns the smallest and the largest batch of `input` in a profile.
    ///
    /// # Errors
    /// [`BuildError::Plan`] with TensorRT's message.
    pub fn batches(&self, input: &str, profile: usize) -> Result<(usize, usize), BuildError> {
        let (name, profile) = (c_name(input), i32::try_from(profile).unwrap_or(i32::MAX));
        let (mut least, mut most) = (0, 0);
        // SAFETY: the engine is open; name and numbers outlive the call.
        let result = unsafe {
            (self.0.library.functions.engine_batches)(
                self.0.handle,
                name.as_ptr(),
                profile,
                &raw mut least,
                &raw mut most,
            )
        };
        self.0.library.check(result)?;
        let size = |batch: i64| usize::try_from(batch).unwrap_or(0);
        Ok((size(least), size(most)))
    }

    /// Returns the device memory that each context allocates, in bytes.
    #[must_use]
    pub fn context_bytes(&self) -> u64 {
        // SAFETY: the engine is open.
        unsafe { (self.0.library.functions.engine_context_bytes)(self.0.handle) }
    }

    /// Creates an execution context for a profile, counted from 0. It uses the calling thread's CUDA context.
    ///
    /// # Safety
    /// `stream` belongs to that CUDA context, or is null for the default stream, and exists during the call.
    ///
    /// # Errors
    /// [`ExecutionError`], for instance when there is not enough memory.
    pub unsafe fn context(
        &self,
        profile: usize,
        stream: *mut c_void,
    ) -> Result<ExecutionContext, ExecutionError> {
        // SAFETY: guaranteed by the caller.
        unsafe { ExecutionContext::open(&self.0, profile, stream) }
    }

    /// Returns TensorRT's description of the layers as JSON.
    ///
    /// # Errors
    /// [`BuildError::Plan`] with TensorRT's message.
    pub fn inspect(&self) -> Result<String, BuildError> {
        let mut json = Vec::new();
        // SAFETY: the engine is open; `json` outlives the call and has the type that the callback expects.
        let result = unsafe {
            (self.0.library.functions.engine_inspect)(
                self.0.handle,
                take_bytes,
                ptr::from_mut(&mut json).cast(),
            )
        };
        self.0.library.check(result)?;
        Ok(String::from_utf8_lossy(&json).into_owned())
    }
}

impl Drop for LoadedEngine {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once, before its library.
        unsafe { (self.library.functions.engine_close)(self.handle) };
    }
}

/// The layout in manifests that were written before layouts were recorded.
fn linear() -> String {
    Layout::Linear.to_string()
}

/// Names a value of `nvinfer1::TensorFormat`.
fn layout(number: i32) -> String {
    Layout::numbered(number).map_or_else(|| format!("format {number}"), |layout| layout.to_string())
}

/// Names a value of `nvinfer1::DataType`.
fn data_type(kind: i32) -> String {
    let known = [
        "fp32", "fp16", "int8", "int32", "bool", "uint8", "fp8", "bf16", "int64", "int4",
    ];
    let name = usize::try_from(kind).ok().and_then(|kind| known.get(kind));
    name.map_or_else(|| format!("type {kind}"), |&name| name.to_owned())
}

/// Converts a tensor's name for C. A name with a NUL becomes empty; no tensor has either name.
pub(crate) fn c_name(name: &str) -> CString {
    CString::new(name).unwrap_or_default()
}

/// Appends bytes to the `Vec<u8>` at `user`.
extern "C" fn take_bytes(user: *mut c_void, data: *const c_void, size: usize) {
    // SAFETY: `user` is the vector of `inspect`, which only this call uses; the bytes are `size` long.
    let (bytes, data) = unsafe {
        (
            &mut *user.cast::<Vec<u8>>(),
            std::slice::from_raw_parts(data.cast::<u8>(), size),
        )
    };
    bytes.extend_from_slice(data);
}
