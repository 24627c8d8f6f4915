//! The C functions and types of a shim (`crates/tensorrt/shim/regatta_trt.h`) as Rust declarations. Safe wrappers are in `library`.

use std::ffi::{c_char, c_void};

use libloading::Library;

/// The version of the ABI that this file declares.
pub(crate) const ABI: u32 = 7;

/// The values of `regatta_trt_status` that have a specific error.
pub(crate) mod status {
    pub(crate) const OK: i32 = 0;
    pub(crate) const MODEL: i32 = 2;
    pub(crate) const PLAN: i32 = 4;
    pub(crate) const UNSUPPORTED: i32 = 5;
    pub(crate) const CANCELLED: i32 = 6;
}

pub(crate) type Log = extern "C" fn(*mut c_void, i32, *const c_char);
pub(crate) type Take = extern "C" fn(*mut c_void, *const c_void, usize);
pub(crate) type Progress = extern "C" fn(*mut c_void, *const c_char, i32, i32) -> i32;
pub(crate) type LayerSink = extern "C" fn(*mut c_void, *const c_char, *const c_char, i32);
pub(crate) type Calibrate = extern "C" fn(*mut c_void, *const *const c_char, *mut *mut c_void, i32) -> i32;

/// `regatta_trt_input_shape`.
#[repr(C)]
pub(crate) struct RawInputShape {
    pub(crate) name: *const c_char,
    pub(crate) rank: i32,
    pub(crate) dims: [i64; 8],
}

/// `regatta_trt_calibration_input`.
#[repr(C)]
pub(crate) struct RawCalibrationInput {
    pub(crate) name: *const c_char,
    pub(crate) kind: i32,
    pub(crate) sample_bytes: u64,
}

/// `regatta_trt_settings`.
#[repr(C)]
pub(crate) struct Settings {
    pub(crate) size: usize,
    pub(crate) onnx: *const c_char,
    pub(crate) precision: i32,
    pub(crate) profiles: i32,
    pub(crate) min_batch: i32,
    pub(crate) opt_batch: i32,
    pub(crate) max_batch: i32,
    pub(crate) workspace_bytes: u64,
    pub(crate) optimization_level: i32,
    pub(crate) dla_core: i32,
    pub(crate) gpu_fallback: i32,
    pub(crate) dla_sram_bytes: u64,
    pub(crate) input_shapes: *const RawInputShape,
    pub(crate) input_shape_count: i32,
    pub(crate) input_type: i32,
    pub(crate) output_type: i32,
    pub(crate) input_format: i32,
    pub(crate) output_format: i32,
    pub(crate) timing_cache: *const c_void,
    pub(crate) timing_cache_size: usize,
    pub(crate) calibration_cache: *const c_void,
    pub(crate) calibration_cache_size: usize,
    pub(crate) calibration_method: i32,
    pub(crate) calibration_batch: i32,
    pub(crate) calibration_inputs: *const RawCalibrationInput,
    pub(crate) calibration_input_count: i32,
    pub(crate) calibrate: Option<Calibrate>,
    pub(crate) progress: Option<Progress>,
    pub(crate) layer: Option<LayerSink>,
    pub(crate) take_plan: Take,
    pub(crate) take_timing_cache: Option<Take>,
    pub(crate) take_calibration_cache: Option<Take>,
    pub(crate) user: *mut c_void,
}

/// `regatta_trt_tensor`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawTensor {
    pub(crate) name: *const c_char,
    pub(crate) is_input: i32,
    pub(crate) kind: i32,
    pub(crate) rank: i32,
    pub(crate) dims: [i64; 8],
    pub(crate) format: i32,
}

/// `regatta_trt_library`.
#[repr(C)]
pub(crate) struct LibraryHandle {
    _private: [u8; 0],
}

/// `regatta_trt_engine`.
#[repr(C)]
pub(crate) struct EngineHandle {
    _private: [u8; 0],
}

/// `regatta_trt_context`.
#[repr(C)]
pub(crate) struct ContextHandle {
    _private: [u8; 0],
}

/// The shim's functions, with the library that keeps them loaded.
pub(crate) struct ShimFunctions {
    pub(crate) headers: extern "C" fn() -> *const c_char,
    pub(crate) error: extern "C" fn() -> *const c_char,
    pub(crate) open: unsafe extern "C" fn(
        *const c_char,
        *const c_char,
        Option<Log>,
        *mut c_void,
        *mut *mut LibraryHandle,
    ) -> i32,
    pub(crate) close: unsafe extern "C" fn(*mut LibraryHandle),
    pub(crate) dla_cores: unsafe extern "C" fn(*mut LibraryHandle) -> i32,
    pub(crate) plugins_load: unsafe extern "C" fn(*mut LibraryHandle, *const c_char) -> i32,
    pub(crate) build: unsafe extern "C" fn(*mut LibraryHandle, *const Settings) -> i32,
    pub(crate) engine_open:
        unsafe extern "C" fn(*mut LibraryHandle, *const c_void, usize, i32, *mut *mut EngineHandle) -> i32,
    pub(crate) engine_close: unsafe extern "C" fn(*mut EngineHandle),
    pub(crate) engine_tensors: unsafe extern "C" fn(*const EngineHandle) -> i32,
    pub(crate) engine_tensor: unsafe extern "C" fn(*const EngineHandle, i32, *mut RawTensor) -> i32,
    pub(crate) engine_inspect: unsafe extern "C" fn(*mut EngineHandle, Take, *mut c_void) -> i32,
    pub(crate) engine_profiles: unsafe extern "C" fn(*const EngineHandle) -> i32,
    pub(crate) engine_batches:
        unsafe extern "C" fn(*const EngineHandle, *const c_char, i32, *mut i64, *mut i64) -> i32,
    pub(crate) engine_context_bytes: unsafe extern "C" fn(*const EngineHandle) -> u64,
    pub(crate) context_open:
        unsafe extern "C" fn(*mut EngineHandle, i32, *mut c_void, *mut *mut ContextHandle) -> i32,
    pub(crate) context_close: unsafe extern "C" fn(*mut ContextHandle),
    pub(crate) context_shape: unsafe extern "C" fn(*mut ContextHandle, *const c_char, *const i64, i32) -> i32,
    pub(crate) context_address: unsafe extern "C" fn(*mut ContextHandle, *const c_char, *mut c_void) -> i32,
    pub(crate) context_enqueue: unsafe extern "C" fn(*mut ContextHandle, *mut c_void) -> i32,
    _library: Library,
}

impl ShimFunctions {
    /// Returns the ABI version of a shim.
    ///
    /// # Safety
    /// `library` is a shim.
    pub(crate) unsafe fn abi(library: &Library) -> Result<u32, libloading::Error> {
        // SAFETY: every ABI of a shim has this function with this type.
        let abi = unsafe { library.get::<extern "C" fn() -> u32>(b"regatta_trt_abi") }?;
        Ok(abi())
    }

    /// Looks up all functions of a shim.
    ///
    /// # Safety
    /// `library` is a shim of [`ABI`].
    pub(crate) unsafe fn load(library: Library) -> Result<Self, libloading::Error> {
        // SAFETY: the caller guarantees the library. Each type is that of regatta_trt.h, and the library is kept for as
        // long as the functions.
        unsafe {
            Ok(Self {
                headers: *library.get(b"regatta_trt_headers")?,
                error: *library.get(b"regatta_trt_error")?,
                open: *library.get(b"regatta_trt_open")?,
                close: *library.get(b"regatta_trt_close")?,
                dla_cores: *library.get(b"regatta_trt_dla_cores")?,
                plugins_load: *library.get(b"regatta_trt_plugins_load")?,
                build: *library.get(b"regatta_trt_build")?,
                engine_open: *library.get(b"regatta_trt_engine_open")?,
                engine_close: *library.get(b"regatta_trt_engine_close")?,
                engine_tensors: *library.get(b"regatta_trt_engine_tensors")?,
                engine_tensor: *library.get(b"regatta_trt_engine_tensor")?,
                engine_inspect: *library.get(b"regatta_trt_engine_inspect")?,
                engine_profiles: *library.get(b"regatta_trt_engine_profiles")?,
                engine_batches: *library.get(b"regatta_trt_engine_batches")?,
                engine_context_bytes: *library.get(b"regatta_trt_engine_context_bytes")?,
                context_open: *library.get(b"regatta_trt_context_open")?,
                context_close: *library.get(b"regatta_trt_context_close")?,
                context_shape: *library.get(b"regatta_trt_context_shape")?,
                context_address: *library.get(b"regatta_trt_context_address")?,
                context_enqueue: *library.get(b"regatta_trt_context_enqueue")?,
                _library: library,
            })
        }
    }
}
