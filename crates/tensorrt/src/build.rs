//! Builds an engine from an ONNX file: settings, progress and output. Writes no file: see `engine_cache`.

use std::{
    error::Error,
    ffi::{CStr, c_char, c_void},
    path::PathBuf,
    ptr,
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{
    calibration_method::CalibrationMethod,
    calibrator::{self, Calibrator, FfiInputs},
    engine::c_name,
    error::BuildError,
    ffi::{self, Settings},
    io_format::{InputShape, IoFormat},
    library::{TensorRt, c_path, text},
    lock::lock,
    placement::{Layer, Placement},
};

/// The precision in which the engine may compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// The network's own precision; a strongly typed network where the version has those.
    #[default]
    AsInNetwork,
    /// 16-bit floats are allowed.
    Fp16,
    /// 8-bit integers and 16-bit floats are allowed. Scales come from a calibration cache or from Q/DQ layers.
    Int8,
}

/// The settings of a build for DLA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DlaSettings {
    /// The core that the engine is built for. The plan runs on every core.
    pub core: u32,
    /// Whether the GPU may run layers that DLA cannot run.
    pub gpu_fallback: bool,
    /// The managed SRAM per core in bytes; 0 for TensorRT's default.
    pub sram_bytes: u64,
}

impl DlaSettings {
    /// The managed SRAM per core in bytes that NVIDIA's harness builds with. TensorRT's own choice is smaller in some versions.
    pub const USUAL_SRAM_BYTES: u64 = 1 << 20;

    /// Returns whether TensorRT takes this number of bytes as managed SRAM; 0 leaves it to TensorRT.
    #[must_use]
    pub const fn is_sram_size(bytes: u64) -> bool {
        bytes == 0 || (bytes.is_power_of_two() && bytes >= 4096)
    }
}

/// The settings of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildSettings {
    /// The ONNX file.
    pub onnx: PathBuf,
    /// The allowed precision.
    pub precision: Precision,
    /// The largest batch, for which TensorRT also optimises.
    pub batch: u32,
    /// The smallest batch; equal to `batch` for an engine with static shapes.
    pub min_batch: u32,
    /// The number of optimisation profiles: one for each context that runs at the same time.
    pub profiles: u32,
    /// The workspace in bytes; 0 for TensorRT's default.
    pub workspace_bytes: u64,
    /// The builder optimisation level; `None` for TensorRT's default.
    pub optimization_level: Option<u32>,
    /// The settings for DLA; `None` builds for the GPU.
    pub dla: Option<DlaSettings>,
    /// The dimensions that the model leaves dynamic besides the batch.
    pub input_shapes: Vec<InputShape>,
    /// The type and layout of the inputs.
    pub input: IoFormat,
    /// The type and layout of the outputs.
    pub output: IoFormat,
    /// The timing cache of an earlier build, or empty.
    pub timing_cache: Vec<u8>,
    /// A calibration cache in TensorRT's text format, or empty.
    pub calibration_cache: Vec<u8>,
    /// How scales are found, or were found in the cache.
    pub calibration_method: CalibrationMethod,
}

/// The progress of a build in one of TensorRT's phases, which may be nested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildPhase {
    /// The phase's name.
    pub name: String,
    /// The number of finished steps.
    pub step: u32,
    pub steps: u32,
}

/// The output of a build.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuildOutput {
    /// The serialised engine.
    pub plan: Vec<u8>,
    /// The timing cache, including this build's measurements.
    pub timing_cache: Vec<u8>,
    /// The calibration cache, when the calibrator was used.
    pub calibration_cache: Vec<u8>,
    /// The placement of the layers, for a build for DLA.
    pub placement: Placement,
}

/// The targets of one build's callbacks, each behind its own lock because TensorRT may call from any thread.
struct Sink<'a, 'c> {
    output: Mutex<BuildOutput>,
    progress: Mutex<&'a mut dyn FnMut(&BuildPhase) -> bool>,
    calibration: Mutex<Option<&'c mut dyn Calibrator>>,
    calibration_failure: Mutex<Option<Box<dyn Error + Send + Sync>>>,
    /// The source of TensorRT's messages about a layer.
    tensorrt: &'a TensorRt,
}

impl TensorRt {
    /// Builds an engine. `progress` is called for every step and cancels the build by returning false; versions before 10
    /// report no progress. `calibration` provides the samples for INT8 scales where there is no calibration cache.
    ///
    /// # Errors
    /// [`BuildError`]; with [`DlaSettings::gpu_fallback`] false, [`BuildError::Fallback`] names the layers that DLA cannot run.
    pub fn build(
        &self,
        settings: &BuildSettings,
        progress: &mut dyn FnMut(&BuildPhase) -> bool,
        calibration: Option<&mut dyn Calibrator>,
    ) -> Result<BuildOutput, BuildError> {
        if let Some(dla) = settings.dla {
            self.check_dla(dla.core)?;
        }
        // Messages from before this build belong to no layer of its network.
        let _ = self.take_messages();
        let onnx = c_path(&settings.onnx);
        let bytes = |bytes: &[u8]| {
            (
                if bytes.is_empty() {
                    ptr::null()
                } else {
                    bytes.as_ptr().cast::<c_void>()
                },
                bytes.len(),
            )
        };
        let (timing_cache, timing_cache_size) = bytes(&settings.timing_cache);
        let (calibration_cache, calibration_cache_size) = bytes(&settings.calibration_cache);
        let count = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
        let names: Vec<_> = settings
            .input_shapes
            .iter()
            .map(|shape| shape.name.as_deref().map(c_name))
            .collect();
        let shapes: Vec<_> = settings
            .input_shapes
            .iter()
            .zip(&names)
            .map(|(shape, name)| c_shape(shape, name.as_deref()))
            .collect();
        let calibrates = calibration.is_some();
        let calibration_samples = FfiInputs::new(calibration.as_deref());
        let sink = Sink {
            output: Mutex::default(),
            progress: Mutex::new(progress),
            calibration: Mutex::new(calibration),
            calibration_failure: Mutex::default(),
            tensorrt: self,
        };
        let ffi_settings = Settings {
            size: size_of::<Settings>(),
            onnx: onnx.as_ptr(),
            precision: settings.precision as i32,
            profiles: count(settings.profiles),
            min_batch: count(settings.min_batch),
            opt_batch: count(settings.batch),
            max_batch: count(settings.batch),
            workspace_bytes: settings.workspace_bytes,
            optimization_level: settings.optimization_level.map_or(-1, count),
            dla_core: settings.dla.map_or(-1, |dla| count(dla.core)),
            gpu_fallback: settings.dla.is_some_and(|dla| dla.gpu_fallback).into(),
            dla_sram_bytes: settings.dla.map_or(0, |dla| dla.sram_bytes),
            input_shapes: shapes.as_ptr(),
            input_shape_count: length(shapes.len()),
            input_type: settings.input.element.map_or(-1, |element| element as i32),
            output_type: settings.output.element.map_or(-1, |element| element as i32),
            input_format: settings.input.format.map_or(-1, |format| format as i32),
            output_format: settings.output.format.map_or(-1, |format| format as i32),
            timing_cache,
            timing_cache_size,
            calibration_cache,
            calibration_cache_size,
            calibration_method: settings.calibration_method as i32,
            calibration_batch: count(settings.batch),
            calibration_inputs: calibration_samples.inputs.as_ptr(),
            calibration_input_count: length(calibration_samples.inputs.len()),
            calibrate: calibrates.then_some(calibrate as ffi::Calibrate),
            progress: Some(report),
            layer: Some(record_layer),
            take_plan,
            take_timing_cache: Some(take_timing_cache),
            take_calibration_cache: Some(take_calibration_cache),
            user: ptr::from_ref(&sink).cast_mut().cast(),
        };
        // SAFETY: everything that `ffi_settings` points to outlives the call; the callbacks share `user` as the sink.
        let result = unsafe { (self.library.functions.build)(self.library.handle, &raw const ffi_settings) };
        let result = self.library.check(result);
        if let Some(failure) = lock(&sink.calibration_failure).take() {
            return Err(BuildError::Calibration(failure));
        }
        let output = sink.output.into_inner().unwrap_or_else(PoisonError::into_inner);
        let placement = &output.placement;
        if settings.dla.is_some_and(|dla| !dla.gpu_fallback) && placement.on_gpu().next().is_some() {
            return Err(BuildError::Fallback {
                on_gpu: placement.on_gpu().map(|layer| layer.name.clone()).collect(),
                layers: placement.layers.len(),
            });
        }
        result?;
        Ok(output)
    }

    /// Refuses a DLA core that TensorRT does not find, with a sentence about its version. A TensorRT that cannot create a
    /// builder passes; the build itself then reports the error.
    ///
    /// # Errors
    /// [`BuildError::Unsupported`] when TensorRT finds too few cores.
    pub fn check_dla(&self, core: u32) -> Result<(), BuildError> {
        let version = self.version();
        match self.dla_cores() {
            Some(cores) if core >= cores => Err(BuildError::Unsupported(format!(
                "DLA core {core} was requested, but TensorRT {version} finds {cores} here: {}",
                version.dla_support()
            ))),
            _ => Ok(()),
        }
    }
}

/// Converts a shape for C. The result points to `name`.
fn c_shape(shape: &InputShape, name: Option<&CStr>) -> ffi::RawInputShape {
    let mut dims = [0; 8];
    for (to, &dim) in dims.iter_mut().zip(&shape.dims) {
        *to = i64::from(dim);
    }
    ffi::RawInputShape {
        name: name.map_or(ptr::null(), CStr::as_ptr),
        rank: length(shape.dims.len().min(dims.len())),
        dims,
    }
}

fn length(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Returns the sink of a callback.
///
/// # Safety
/// `user` is the sink of a build that is running.
unsafe fn sink<'a>(user: *mut c_void) -> &'a Sink<'a, 'a> {
    // SAFETY: guaranteed by the caller.
    unsafe { &*user.cast::<Sink<'a, 'a>>() }
}

extern "C" fn report(user: *mut c_void, phase: *const c_char, step: i32, steps: i32) -> i32 {
    // SAFETY: `build` passes its sink as `user`.
    let sink = unsafe { sink(user) };
    let phase = BuildPhase {
        name: text(phase),
        step: u32::try_from(step).unwrap_or(0),
        steps: u32::try_from(steps).unwrap_or(0),
    };
    i32::from(!(lock(&sink.progress))(&phase))
}

extern "C" fn record_layer(user: *mut c_void, name: *const c_char, kind: *const c_char, supported: i32) {
    // SAFETY: `build` passes its sink as `user`.
    let sink = unsafe { sink(user) };
    let messages = sink.tensorrt.take_messages();
    lock(&sink.output).placement.layers.push(Layer {
        name: text(name),
        kind: text(kind),
        on_dla: supported != 0,
        reason: (supported == 0 && !messages.is_empty()).then(|| messages.join("; ")),
    });
}

extern "C" fn take_plan(user: *mut c_void, data: *const c_void, size: usize) {
    // SAFETY: `build` passes its sink as `user`; the bytes are `size` long.
    let (sink, data) = unsafe { (sink(user), std::slice::from_raw_parts(data.cast::<u8>(), size)) };
    lock(&sink.output).plan = data.to_vec();
}

extern "C" fn take_timing_cache(user: *mut c_void, data: *const c_void, size: usize) {
    // SAFETY: `build` passes its sink as `user`; the bytes are `size` long.
    let (sink, data) = unsafe { (sink(user), std::slice::from_raw_parts(data.cast::<u8>(), size)) };
    lock(&sink.output).timing_cache = data.to_vec();
}

extern "C" fn take_calibration_cache(user: *mut c_void, data: *const c_void, size: usize) {
    // SAFETY: `build` passes its sink as `user`; the bytes are `size` long.
    let (sink, data) = unsafe { (sink(user), std::slice::from_raw_parts(data.cast::<u8>(), size)) };
    lock(&sink.output).calibration_cache = data.to_vec();
}

extern "C" fn calibrate(
    user: *mut c_void,
    names: *const *const c_char,
    buffers: *mut *mut c_void,
    count: i32,
) -> i32 {
    // SAFETY: `build` passes its sink as `user`.
    let sink = unsafe { sink(user) };
    // SAFETY: TensorRT passes `count` names and room for as many addresses.
    let filled = unsafe { calibrator::fill_batch(&sink.calibration, names, buffers, count) };
    let has_batch = filled.unwrap_or_else(|failure| {
        *lock(&sink.calibration_failure) = Some(failure);
        false
    });
    has_batch.into()
}

const _: () = assert!(ffi::ABI == 7, "the settings above are those of ABI 7");
