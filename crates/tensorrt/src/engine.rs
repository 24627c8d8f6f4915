//! An engine that TensorRT has loaded: what goes in and out, its profiles, its layers. Running it is in `context`.

use std::{
    ffi::{CString, c_void},
    ptr,
    sync::Arc,
};

use regatta_rules::layout::Layout;
use serde::{Deserialize, Serialize};

use crate::{
    context::Context,
    error::{BuildError, RunError},
    face::{self, EngineHandle},
    library::{Opened, text},
};

/// One input or output of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Whether it is an input.
    pub input: bool,
    /// Its type, such as `fp32`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its dimensions, -1 where free; the network's, whatever the layout.
    pub dims: Vec<i64>,
    /// Its layout, such as `linear`.
    #[serde(default = "linear")]
    pub format: String,
}

/// A loaded engine. Clones are the same one.
#[derive(Clone)]
pub struct Engine(Arc<Loaded>);

/// The shim's engine, for as long as a context needs it.
pub(crate) struct Loaded {
    pub(crate) opened: Arc<Opened>,
    pub(crate) handle: *mut EngineHandle,
}

// SAFETY: what is asked of an engine here TensorRT allows from several threads at once.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Engine {
    pub(crate) fn open(opened: &Arc<Opened>, plan: &[u8], dla_core: Option<u32>) -> Result<Self, BuildError> {
        let core = dla_core.map_or(-1, |core| i32::try_from(core).unwrap_or(i32::MAX));
        let mut handle = ptr::null_mut();
        // SAFETY: the plan is read during the call only; `handle` outlives it.
        let result = unsafe {
            (opened.face.engine_open)(
                opened.handle,
                plan.as_ptr().cast(),
                plan.len(),
                core,
                &raw mut handle,
            )
        };
        opened.check(result)?;
        Ok(Self(Arc::new(Loaded {
            opened: Arc::clone(opened),
            handle,
        })))
    }

    /// Inputs and outputs in the engine's order.
    ///
    /// # Errors
    /// [`BuildError::Plan`].
    pub fn tensors(&self) -> Result<Vec<Tensor>, BuildError> {
        let face = &self.0.opened.face;
        // SAFETY: the engine is open.
        let count = unsafe { (face.engine_tensors)(self.0.handle) };
        let tensor = |number| {
            let mut tensor = face::Tensor {
                name: ptr::null(),
                is_input: 0,
                kind: 0,
                rank: 0,
                dims: [0; 8],
                format: 0,
            };
            // SAFETY: the engine is open and `tensor` outlives the call.
            let result = unsafe { (face.engine_tensor)(self.0.handle, number, &raw mut tensor) };
            self.0.opened.check(result)?;
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

    /// How many contexts can run side by side on free shapes.
    #[must_use]
    pub fn profiles(&self) -> usize {
        // SAFETY: the engine is open.
        let profiles = unsafe { (self.0.opened.face.engine_profiles)(self.0.handle) };
        usize::try_from(profiles).unwrap_or(0)
    }

    /// The smallest and the largest batch that `input` takes in a profile.
    ///
    /// # Errors
    /// [`BuildError::Plan`].
    pub fn batches(&self, input: &str, profile: usize) -> Result<(usize, usize), BuildError> {
        let (name, profile) = (c_name(input), i32::try_from(profile).unwrap_or(i32::MAX));
        let (mut least, mut most) = (0, 0);
        // SAFETY: the engine is open; name and numbers outlive the call.
        let result = unsafe {
            (self.0.opened.face.engine_batches)(
                self.0.handle,
                name.as_ptr(),
                profile,
                &raw mut least,
                &raw mut most,
            )
        };
        self.0.opened.check(result)?;
        let size = |given: i64| usize::try_from(given).unwrap_or(0);
        Ok((size(least), size(most)))
    }

    /// Bytes of device memory that each context takes for itself.
    #[must_use]
    pub fn context_bytes(&self) -> u64 {
        // SAFETY: the engine is open.
        unsafe { (self.0.opened.face.engine_context_bytes)(self.0.handle) }
    }

    /// A context on a profile, counted from 0. It uses the calling thread's CUDA context.
    ///
    /// # Safety
    /// `stream` is a stream of that CUDA context, or null for the default one, and lives during the call.
    ///
    /// # Errors
    /// [`RunError`], also when memory does not suffice.
    pub unsafe fn context(&self, profile: usize, stream: *mut c_void) -> Result<Context, RunError> {
        // SAFETY: the caller's promise.
        unsafe { Context::open(&self.0, profile, stream) }
    }

    /// TensorRT's description of the layers, as JSON.
    ///
    /// # Errors
    /// [`BuildError::Plan`].
    pub fn inspect(&self) -> Result<String, BuildError> {
        let mut json = Vec::new();
        // SAFETY: the engine is open; `json` outlives the call and is what the callback expects.
        let result = unsafe {
            (self.0.opened.face.engine_inspect)(self.0.handle, take_bytes, ptr::from_mut(&mut json).cast())
        };
        self.0.opened.check(result)?;
        Ok(String::from_utf8_lossy(&json).into_owned())
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once, before the library that it holds.
        unsafe { (self.opened.face.engine_close)(self.handle) };
    }
}

/// What engines had before their layout was kept.
fn linear() -> String {
    Layout::Linear.to_string()
}

/// `nvinfer1::TensorFormat`.
fn layout(number: i32) -> String {
    Layout::numbered(number).map_or_else(|| format!("format {number}"), |layout| layout.to_string())
}

/// `nvinfer1::DataType`.
fn data_type(kind: i32) -> String {
    let known = [
        "fp32", "fp16", "int8", "int32", "bool", "uint8", "fp8", "bf16", "int64", "int4",
    ];
    let name = usize::try_from(kind).ok().and_then(|kind| known.get(kind));
    name.map_or_else(|| format!("type {kind}"), |&name| name.to_owned())
}

/// A tensor's name for C. One with a NUL, which no tensor has, becomes one that is not there.
pub(crate) fn c_name(name: &str) -> CString {
    CString::new(name).unwrap_or_default()
}

/// `user` is a `Vec<u8>`.
extern "C" fn take_bytes(user: *mut c_void, data: *const c_void, size: usize) {
    // SAFETY: `user` is what `inspect` gave, exclusively for this call; the bytes are `size` long.
    let (bytes, data) = unsafe {
        (
            &mut *user.cast::<Vec<u8>>(),
            std::slice::from_raw_parts(data.cast::<u8>(), size),
        )
    };
    bytes.extend_from_slice(data);
}
