//! Building an engine from ONNX: what is asked, how far it is, what came out. Writes no file: see `cache`.

use std::{
    ffi::{CStr, c_char, c_void},
    path::PathBuf,
    ptr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{
    calibration::{self, Calibration, Described},
    engine::c_name,
    error::BuildError,
    face::{self, Settings},
    io::{InputShape, Io},
    library::{TensorRt, c_path, text},
    placement::{Layer, Placement},
};

/// Which types the engine may compute in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// As the network says; strongly typed where the version knows that.
    #[default]
    AsInNetwork,
    /// 16-bit floats allowed.
    Fp16,
    /// 8-bit integers and 16-bit floats allowed: scales come from a calibration cache or from Q/DQ layers.
    Int8,
}

/// The DLA half of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dla {
    /// Which core is built for; the plan runs on either.
    pub core: u32,
    /// Whether layers that it cannot run may go to the GPU.
    pub gpu_fallback: bool,
    /// Managed SRAM per core in bytes; 0 leaves it to TensorRT.
    pub sram_bytes: u64,
}

/// What is to be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildSettings {
    /// The model.
    pub onnx: PathBuf,
    /// Types.
    pub precision: Precision,
    /// Largest batch, which is also the one that it is tuned for.
    pub batch: u32,
    /// Smallest batch; the same as `batch` for a static engine.
    pub min_batch: u32,
    /// Optimisation profiles, one per context that is to run at once.
    pub profiles: u32,
    /// Workspace in bytes; 0 leaves it to TensorRT.
    pub workspace_bytes: u64,
    /// Builder optimisation level; `None` leaves it to TensorRT.
    pub optimization_level: Option<u32>,
    /// For a DLA core instead of the GPU.
    pub dla: Option<Dla>,
    /// What the model leaves free of its inputs besides the batch.
    pub input_shapes: Vec<InputShape>,
    /// Type and layout of the inputs.
    pub input: Io,
    /// Type and layout of the outputs.
    pub output: Io,
    /// A timing cache of an earlier build.
    pub timing_cache: Vec<u8>,
    /// A calibration cache, in TensorRT's text format.
    pub calibration_cache: Vec<u8>,
}

/// How far a build is: TensorRT's own phases, which nest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Steps done.
    pub step: u32,
    /// Steps in all.
    pub steps: u32,
}

/// What a build gave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Built {
    /// The engine, serialised.
    pub plan: Vec<u8>,
    /// The timing cache, with what was measured now.
    pub timing_cache: Vec<u8>,
    /// The calibration cache, where samples were run.
    pub calibration_cache: Vec<u8>,
    /// Where layers can run, when a DLA core was asked for.
    pub placement: Placement,
}

/// What the callbacks of one build write to, each behind a lock of its own: progress may come from any thread.
struct Sink<'a, 'c> {
    built: Mutex<Built>,
    progress: Mutex<&'a mut dyn FnMut(&Phase) -> bool>,
    calibration: Mutex<Option<&'c mut dyn Calibration>>,
    calibration_failure: Mutex<Option<String>>,
    /// To ask for TensorRT's words about a layer.
    tensorrt: &'a TensorRt,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TensorRt {
    /// Builds an engine. `progress` is told of every step and stops the build by returning false; versions before 10
    /// tell nothing. `calibration` finds the scales of INT8 where there is no calibration cache.
    ///
    /// # Errors
    /// [`BuildError`]; with [`Dla::gpu_fallback`] false, [`BuildError::Fallback`] names the layers that DLA cannot run.
    pub fn build(
        &self,
        settings: &BuildSettings,
        progress: &mut dyn FnMut(&Phase) -> bool,
        calibration: Option<&mut dyn Calibration>,
    ) -> Result<Built, BuildError> {
        if let Some(dla) = settings.dla {
            self.check_dla(dla.core)?;
        }
        // What is left over from before belongs to no layer of this network.
        let _ = self.take_words();
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
        let calibration_samples = Described::of(calibration.as_deref());
        let sink = Sink {
            built: Mutex::default(),
            progress: Mutex::new(progress),
            calibration: Mutex::new(calibration),
            calibration_failure: Mutex::default(),
            tensorrt: self,
        };
        let given = Settings {
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
            calibration_batch: count(settings.batch),
            calibration_inputs: calibration_samples.inputs.as_ptr(),
            calibration_input_count: length(calibration_samples.inputs.len()),
            calibrate: calibrates.then_some(calibrate as face::Calibrate),
            progress: Some(report),
            layer: Some(note_layer),
            take_plan,
            take_timing_cache: Some(take_timing_cache),
            take_calibration_cache: Some(take_calibration_cache),
            user: ptr::from_ref(&sink).cast_mut().cast(),
        };
        // SAFETY: all that `given` points to outlives the call; the callbacks know `user` as the sink and only read it.
        let result = unsafe { (self.opened.face.build)(self.opened.handle, &raw const given) };
        let outcome = self.opened.check(result);
        if let Some(failure) = lock(&sink.calibration_failure).take() {
            return Err(BuildError::Calibration(failure));
        }
        let built = sink.built.into_inner().unwrap_or_else(PoisonError::into_inner);
        let placement = &built.placement;
        if settings.dla.is_some_and(|dla| !dla.gpu_fallback) && placement.on_gpu().next().is_some() {
            return Err(BuildError::Fallback {
                on_gpu: placement.on_gpu().map(|layer| layer.name.clone()).collect(),
                layers: placement.layers.len(),
            });
        }
        outcome?;
        Ok(built)
    }

    /// Refuses a DLA core that this TensorRT does not find, with what is known of its version. Where it makes no builder to ask, the
    /// build itself will say so.
    ///
    /// # Errors
    /// [`BuildError::Unsupported`].
    pub fn check_dla(&self, core: u32) -> Result<(), BuildError> {
        let version = self.version();
        match self.dla_cores() {
            Some(cores) if core >= cores => Err(BuildError::Unsupported(format!(
                "DLA core {core} was asked for, but TensorRT {version} finds {cores} here: {}",
                version.dla()
            ))),
            _ => Ok(()),
        }
    }
}

/// A shape for C, as long as its name lives.
fn c_shape(shape: &InputShape, name: Option<&CStr>) -> face::InputShape {
    let mut dims = [0; 8];
    for (to, &dim) in dims.iter_mut().zip(&shape.dims) {
        *to = i64::from(dim);
    }
    face::InputShape {
        name: name.map_or(ptr::null(), CStr::as_ptr),
        rank: length(shape.dims.len().min(dims.len())),
        dims,
    }
}

fn length(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The sink of a callback.
///
/// # Safety
/// `user` is the sink of a build that is under way.
unsafe fn sink<'a>(user: *mut c_void) -> &'a Sink<'a, 'a> {
    // SAFETY: the caller's promise.
    unsafe { &*user.cast::<Sink<'a, 'a>>() }
}

extern "C" fn report(user: *mut c_void, phase: *const c_char, step: i32, steps: i32) -> i32 {
    // SAFETY: see `build`.
    let sink = unsafe { sink(user) };
    let phase = Phase {
        name: text(phase),
        step: u32::try_from(step).unwrap_or(0),
        steps: u32::try_from(steps).unwrap_or(0),
    };
    i32::from(!(lock(&sink.progress))(&phase))
}

extern "C" fn note_layer(user: *mut c_void, name: *const c_char, kind: *const c_char, supported: i32) {
    // SAFETY: see `build`.
    let sink = unsafe { sink(user) };
    let words = sink.tensorrt.take_words();
    lock(&sink.built).placement.layers.push(Layer {
        name: text(name),
        kind: text(kind),
        on_dla: supported != 0,
        reason: (supported == 0 && !words.is_empty()).then(|| words.join("; ")),
    });
}

extern "C" fn take_plan(user: *mut c_void, data: *const c_void, size: usize) {
    // SAFETY: see `build`; the bytes are `size` long.
    let (sink, data) = unsafe { (sink(user), std::slice::from_raw_parts(data.cast::<u8>(), size)) };
    lock(&sink.built).plan = data.to_vec();
}

extern "C" fn take_timing_cache(user: *mut c_void, data: *const c_void, size: usize) {
    // SAFETY: see `build`; the bytes are `size` long.
    let (sink, data) = unsafe { (sink(user), std::slice::from_raw_parts(data.cast::<u8>(), size)) };
    lock(&sink.built).timing_cache = data.to_vec();
}

extern "C" fn take_calibration_cache(user: *mut c_void, data: *const c_void, size: usize) {
    // SAFETY: see `build`; the bytes are `size` long.
    let (sink, data) = unsafe { (sink(user), std::slice::from_raw_parts(data.cast::<u8>(), size)) };
    lock(&sink.built).calibration_cache = data.to_vec();
}

extern "C" fn calibrate(
    user: *mut c_void,
    names: *const *const c_char,
    buffers: *mut *mut c_void,
    count: i32,
) -> i32 {
    // SAFETY: see `build`.
    let sink = unsafe { sink(user) };
    // SAFETY: TensorRT gives so many names, and places for as many addresses.
    let filled = unsafe { calibration::fill(&sink.calibration, names, buffers, count) };
    let there_is_one = filled.unwrap_or_else(|failure| {
        *lock(&sink.calibration_failure) = Some(failure);
        false
    });
    there_is_one.into()
}

const _: () = assert!(face::ABI == 5, "the settings above are those of ABI 5");
