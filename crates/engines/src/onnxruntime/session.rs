//! A session: a network that ONNX Runtime has loaded, with its inputs and outputs. Knows no benchmark.

use std::{ffi::CString, os::unix::ffi::OsStrExt as _, path::Path, ptr};

use ort_sys::{
    GraphOptimizationLevel, ONNXType, OrtSession, OrtSessionOptions, OrtTensorTypeAndShapeInfo, OrtTypeInfo,
    OrtValue,
};

use super::{Optimization, Provider, element::Element, error::CallError, library::OnnxRuntime};

/// The most dimensions of a tensor.
const MAX_RANK: usize = 64;

/// How a session computes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionSettings {
    pub(super) provider: Provider,
    /// Threads that compute a batch, at least 1: the calling one and others of the session.
    pub(super) threads: usize,
    pub(super) optimization: Optimization,
}

/// An input or output as the network declares it.
#[derive(Debug, Clone)]
pub(super) struct Tensor {
    /// Without NUL.
    pub(super) name: CString,
    /// `None` when it is not a tensor but a list or a map.
    pub(super) form: Option<Form>,
}

/// The type and the shape of a tensor. Dimensions that the network leaves open are -1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) element: Element,
    pub(super) dims: Vec<i64>,
}

/// A loaded network.
pub(super) struct Session {
    pub(super) runtime: &'static OnnxRuntime,
    session: *mut OrtSession,
    pub(super) inputs: Vec<Tensor>,
    pub(super) outputs: Vec<Tensor>,
}

// SAFETY: a session's only state that changes is behind its own locks; `Run` may be called from several threads at a time.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the session any more.
        unsafe { (self.runtime.api.ReleaseSession)(self.session) };
    }
}

impl Session {
    /// Loads a network.
    ///
    /// # Errors
    /// [`CallError`] when the file is not a network that ONNX Runtime can compute, or the provider does not start.
    pub(super) fn load(
        runtime: &'static OnnxRuntime,
        file: &Path,
        settings: &SessionSettings,
    ) -> Result<Self, CallError> {
        let options = SessionOptions::new(runtime, settings)?;
        let path = CString::new(file.as_os_str().as_bytes()).map_err(|error| CallError(error.to_string()))?;
        let mut session = ptr::null_mut();
        // SAFETY: environment, path and options live during the call.
        runtime.check(unsafe {
            (runtime.api.CreateSession)(
                runtime.environment,
                path.as_ptr(),
                options.options,
                &raw mut session,
            )
        })?;
        let mut session = Self {
            runtime,
            session,
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        session.inputs = session.tensors(true)?;
        session.outputs = session.tensors(false)?;
        Ok(session)
    }

    /// Returns the description of the inputs, or of the outputs.
    fn tensors(&self, are_inputs: bool) -> Result<Vec<Tensor>, CallError> {
        let api = self.runtime.api;
        let (count_of, name_of, type_of) = if are_inputs {
            (
                api.SessionGetInputCount,
                api.SessionGetInputName,
                api.SessionGetInputTypeInfo,
            )
        } else {
            (
                api.SessionGetOutputCount,
                api.SessionGetOutputName,
                api.SessionGetOutputTypeInfo,
            )
        };
        let mut count = 0;
        // SAFETY: the session lives, and `count` outlives the call.
        let status = unsafe { count_of(self.session, &raw mut count) };
        self.runtime.check(status)?;
        let mut allocator = ptr::null_mut();
        // SAFETY: the allocator is the library's own, and is not freed.
        let status = unsafe { (api.GetAllocatorWithDefaultOptions)(&raw mut allocator) };
        self.runtime.check(status)?;
        let mut tensors = Vec::new();
        for number in 0..count {
            let mut name = ptr::null_mut();
            // SAFETY: the session has this input or output; the name is freed below.
            let status = unsafe { name_of(self.session, number, allocator, &raw mut name) };
            self.runtime.check(status)?;
            // SAFETY: the call has returned a string, which is copied before it is freed.
            let owned = unsafe { std::ffi::CStr::from_ptr(name) }.to_owned();
            // SAFETY: the name was allocated with this allocator.
            let status = unsafe { (api.AllocatorFree)(allocator, name.cast()) };
            self.runtime.check(status)?;
            let mut info = ptr::null_mut();
            // SAFETY: the session has this input or output; the description is freed when `info` is dropped.
            let status = unsafe { type_of(self.session, number, &raw mut info) };
            self.runtime.check(status)?;
            let info = TypeInfo {
                runtime: self.runtime,
                info,
            };
            tensors.push(Tensor {
                name: owned,
                form: info.form()?,
            });
        }
        Ok(tensors)
    }

    /// Computes a batch. `names` are those of the inputs and of the computed outputs, in the order of `values.inputs` and `values.outputs`, which
    /// take the results.
    ///
    /// # Errors
    /// [`CallError`] when the network cannot be computed.
    pub(super) fn run(&self, names: &Names, values: &mut Values) -> Result<(), CallError> {
        values.release_outputs();
        // SAFETY: names and inputs live during the call, inputs refer to memory that the caller keeps, and each list has the length of its names.
        self.runtime.check(unsafe {
            (self.runtime.api.Run)(
                self.session,
                ptr::null(),
                names.inputs.as_ptr().cast(),
                values.inputs.as_ptr().cast(),
                names.inputs.len().min(values.inputs.len()),
                names.outputs.as_ptr().cast(),
                names.outputs.len().min(values.outputs.len()),
                values.outputs.as_mut_ptr(),
            )
        })
    }
}

/// The names of inputs and outputs, as the interface takes them. They are those of the session's tensors.
pub(super) struct Names {
    inputs: Vec<*const std::ffi::c_char>,
    outputs: Vec<*const std::ffi::c_char>,
    /// Keeps the names.
    _session: std::sync::Arc<Session>,
}

// SAFETY: the names belong to the session that is kept, and do not change.
unsafe impl Send for Names {}

impl Names {
    /// Returns the names of all inputs, and of the outputs at `places`.
    pub(super) fn of(session: &std::sync::Arc<Session>, places: &[usize]) -> Self {
        Self {
            inputs: session.inputs.iter().map(|tensor| tensor.name.as_ptr()).collect(),
            outputs: places
                .iter()
                .map(|&place| session.outputs[place].name.as_ptr())
                .collect(),
            _session: std::sync::Arc::clone(session),
        }
    }
}

/// The inputs and outputs of a computation.
pub(super) struct Values {
    runtime: &'static OnnxRuntime,
    inputs: Vec<*mut OrtValue>,
    outputs: Vec<*mut OrtValue>,
}

// SAFETY: a value may be used from any thread, by one at a time.
unsafe impl Send for Values {}

impl Drop for Values {
    fn drop(&mut self) {
        self.release_inputs();
        self.release_outputs();
    }
}

impl Values {
    pub(super) fn new(runtime: &'static OnnxRuntime, inputs: usize, outputs: usize) -> Self {
        Self {
            runtime,
            inputs: vec![ptr::null_mut(); inputs],
            outputs: vec![ptr::null_mut(); outputs],
        }
    }

    /// Sets an input to `memory`.
    ///
    /// # Safety
    /// Until the inputs are released, the memory must not move or be used otherwise. It has as many bytes as `dims` and `element` need.
    pub(super) unsafe fn set_input(
        &mut self,
        number: usize,
        memory: &mut [u8],
        element: Element,
        dims: &[i64],
    ) -> Result<(), CallError> {
        let unknown = || CallError(format!("an input is {element}"));
        let kind = element.number().ok_or_else(unknown)?;
        let mut value = ptr::null_mut();
        // SAFETY: the caller guarantees the memory; dimensions are copied.
        self.runtime.check(unsafe {
            (self.runtime.api.CreateTensorWithDataAsOrtValue)(
                self.runtime.host_memory,
                memory.as_mut_ptr().cast(),
                memory.len(),
                dims.as_ptr(),
                dims.len(),
                kind,
                &raw mut value,
            )
        })?;
        self.inputs[number] = value;
        Ok(())
    }

    /// Frees the inputs, but not their memory.
    pub(super) fn release_inputs(&mut self) {
        release(self.runtime, &mut self.inputs);
    }

    fn release_outputs(&mut self) {
        release(self.runtime, &mut self.outputs);
    }

    /// Returns the type and the shape of an output.
    pub(super) fn output_form(&self, number: usize) -> Result<Form, CallError> {
        let info = self.output_info(number)?;
        let form = form_of(self.runtime, info);
        // SAFETY: the description is not used any more.
        unsafe { (self.runtime.api.ReleaseTensorTypeAndShapeInfo)(info) };
        form
    }

    fn output_info(&self, number: usize) -> Result<*mut OrtTensorTypeAndShapeInfo, CallError> {
        let mut info = ptr::null_mut();
        // SAFETY: the output is that of the last computation.
        self.runtime.check(unsafe {
            (self.runtime.api.GetTensorTypeAndShape)(self.outputs[number], &raw mut info)
        })?;
        Ok(info)
    }

    /// Returns the elements of an output.
    pub(super) fn output_elements(&self, number: usize) -> Result<usize, CallError> {
        let info = self.output_info(number)?;
        let mut count = 0;
        // SAFETY: the description lives.
        let status = unsafe { (self.runtime.api.GetTensorShapeElementCount)(info, &raw mut count) };
        let counted = self.runtime.check(status);
        // SAFETY: the description is not used any more.
        unsafe { (self.runtime.api.ReleaseTensorTypeAndShapeInfo)(info) };
        counted.map(|()| count)
    }

    /// Returns the first `bytes` bytes of an output, in host memory.
    ///
    /// # Safety
    /// The output must have at least `bytes` bytes.
    pub(super) unsafe fn output(&self, number: usize, bytes: usize) -> Result<&[u8], CallError> {
        let mut data = ptr::null_mut();
        // SAFETY: the output is that of the last computation.
        let status = unsafe { (self.runtime.api.GetTensorMutableData)(self.outputs[number], &raw mut data) };
        self.runtime.check(status)?;
        if data.is_null() {
            return Ok(&[]);
        }
        // SAFETY: the caller guarantees the size, and the output lives until the next computation, for which `self` is borrowed mutably.
        Ok(unsafe { std::slice::from_raw_parts(data.cast_const().cast(), bytes) })
    }
}

fn release(runtime: &OnnxRuntime, values: &mut [*mut OrtValue]) {
    for value in values {
        if !value.is_null() {
            // SAFETY: nothing refers to the value any more.
            unsafe { (runtime.api.ReleaseValue)(*value) };
            *value = ptr::null_mut();
        }
    }
}

/// The description of an input's or output's type.
struct TypeInfo {
    runtime: &'static OnnxRuntime,
    info: *mut OrtTypeInfo,
}

impl Drop for TypeInfo {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the description any more.
        unsafe { (self.runtime.api.ReleaseTypeInfo)(self.info) };
    }
}

impl TypeInfo {
    /// Returns the form, unless it is not a tensor.
    fn form(&self) -> Result<Option<Form>, CallError> {
        // The library writes a number that this enum may not have.
        let mut kind = ONNXType::ONNX_TYPE_UNKNOWN as i32;
        // SAFETY: the description lives, and an `ONNXType` is an i32.
        self.runtime.check(unsafe {
            (self.runtime.api.GetOnnxTypeFromTypeInfo)(self.info, (&raw mut kind).cast())
        })?;
        if kind != ONNXType::ONNX_TYPE_TENSOR as i32 {
            return Ok(None);
        }
        let mut info = ptr::null();
        // SAFETY: the description lives, and owns the one that is returned.
        let status = unsafe { (self.runtime.api.CastTypeInfoToTensorInfo)(self.info, &raw mut info) };
        self.runtime.check(status)?;
        form_of(self.runtime, info).map(Some)
    }
}

/// Returns a tensor's type and shape.
fn form_of(runtime: &OnnxRuntime, info: *const OrtTensorTypeAndShapeInfo) -> Result<Form, CallError> {
    // The library writes a number that the interface's enum may not have.
    let (mut number, mut rank) = (0_i32, 0);
    // SAFETY: the description lives, and an element type is an i32.
    runtime.check(unsafe { (runtime.api.GetTensorElementType)(info, (&raw mut number).cast()) })?;
    // SAFETY: the description lives.
    runtime.check(unsafe { (runtime.api.GetDimensionsCount)(info, &raw mut rank) })?;
    if rank > MAX_RANK {
        return Err(CallError(format!("a tensor has {rank} dimensions")));
    }
    let mut dims = vec![0; rank];
    // SAFETY: the description lives, and the list has the length.
    runtime.check(unsafe { (runtime.api.GetDimensions)(info, dims.as_mut_ptr(), rank) })?;
    Ok(Form {
        element: Element::of(number),
        dims,
    })
}

/// The options of a session.
struct SessionOptions {
    runtime: &'static OnnxRuntime,
    options: *mut OrtSessionOptions,
}

impl Drop for SessionOptions {
    fn drop(&mut self) {
        // SAFETY: sessions copy their options.
        unsafe { (self.runtime.api.ReleaseSessionOptions)(self.options) };
    }
}

impl SessionOptions {
    fn new(runtime: &'static OnnxRuntime, settings: &SessionSettings) -> Result<Self, CallError> {
        let api = runtime.api;
        let mut options = ptr::null_mut();
        // SAFETY: `options` outlives the call.
        runtime.check(unsafe { (api.CreateSessionOptions)(&raw mut options) })?;
        let created = Self { runtime, options };
        let threads = i32::try_from(settings.threads).unwrap_or(i32::MAX);
        // SAFETY: the options live.
        runtime.check(unsafe { (api.SetIntraOpNumThreads)(options, threads) })?;
        let level = match settings.optimization {
            Optimization::None => GraphOptimizationLevel::ORT_DISABLE_ALL,
            Optimization::Basic => GraphOptimizationLevel::ORT_ENABLE_BASIC,
            Optimization::Extended => GraphOptimizationLevel::ORT_ENABLE_EXTENDED,
            Optimization::All => GraphOptimizationLevel::ORT_ENABLE_ALL,
        };
        // SAFETY: the options live.
        runtime.check(unsafe { (api.SetSessionGraphOptimizationLevel)(options, level) })?;
        if settings.provider == Provider::Tensorrt {
            created.append_tensorrt()?;
        }
        if settings.provider != Provider::Cpu {
            // CUDA also computes what TensorRT cannot.
            created.append_cuda()?;
        }
        Ok(created)
    }

    fn append_cuda(&self) -> Result<(), CallError> {
        let (api, mut cuda) = (self.runtime.api, ptr::null_mut());
        // SAFETY: `cuda` outlives the call.
        let status = unsafe { (api.CreateCUDAProviderOptions)(&raw mut cuda) };
        self.runtime.check(status)?;
        // SAFETY: both live.
        let status = unsafe { (api.SessionOptionsAppendExecutionProvider_CUDA_V2)(self.options, cuda) };
        let appended = self.runtime.check(status);
        // SAFETY: the session's options have a copy.
        unsafe { (api.ReleaseCUDAProviderOptions)(cuda) };
        appended
    }

    fn append_tensorrt(&self) -> Result<(), CallError> {
        let (api, mut tensorrt) = (self.runtime.api, ptr::null_mut());
        // SAFETY: `tensorrt` outlives the call.
        let status = unsafe { (api.CreateTensorRTProviderOptions)(&raw mut tensorrt) };
        self.runtime.check(status)?;
        // SAFETY: both live.
        let status =
            unsafe { (api.SessionOptionsAppendExecutionProvider_TensorRT_V2)(self.options, tensorrt) };
        let appended = self.runtime.check(status);
        // SAFETY: the session's options have a copy.
        unsafe { (api.ReleaseTensorRTProviderOptions)(tensorrt) };
        appended
    }
}
