//! Finding and opening the driver's library, and what it says of itself and of its devices.

use std::{
    error::Error as _,
    ffi::{CStr, c_char, c_int},
    path::Path,
    ptr,
    sync::Arc,
};

use cudarc::driver::sys::CUdevice_attribute;
use libloading::Library;

use crate::{
    context::{Context, Device},
    error::{CudaError, OpenError},
    functions::Functions,
};

/// Names of the library: the driver's own file first; the bare name may be a stub of the toolkit.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// CUDA 11.4, as `cuDriverGetVersion` counts.
const OLDEST: u32 = 11_040;

/// `CUDA_SUCCESS`.
const SUCCESS: u32 = 0;

/// CUDA's driver, started.
#[derive(Clone)]
pub struct Driver {
    functions: Arc<Functions>,
    version: u32,
}

impl Driver {
    /// Opens the system's driver.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open() -> Result<Self, OpenError> {
        let mut reasons = Vec::new();
        for name in NAMES {
            match Self::open_file(Path::new(name)) {
                Err(OpenError::NotFound { reason }) => reasons.push(reason),
                opened => return opened,
            }
        }
        Err(OpenError::NotFound {
            reason: reasons.join("; "),
        })
    }

    /// Opens the driver in a file.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_file(path: &Path) -> Result<Self, OpenError> {
        let not_found = |error: libloading::Error| OpenError::NotFound {
            // What the loader says is the cause; the error itself says only who was asked.
            reason: error.source().unwrap_or(&error).to_string(),
        };
        // SAFETY: loading runs the library's initialisers; it is NVIDIA's driver, found under its own name, or named by
        // the caller as such.
        let library = unsafe { Library::new(path) }.map_err(not_found)?;
        let missing = Functions::missing(&library);
        if !missing.is_empty() {
            return Err(OpenError::Lacks {
                path: path.to_owned(),
                missing,
            });
        }
        // SAFETY: it has all of the driver's functions.
        let functions = Arc::new(unsafe { Functions::of(library) }.map_err(not_found)?);
        let mut driver = Self {
            functions,
            version: 0,
        };
        let mut version = 0;
        // SAFETY: `version` outlives the call, which may come before cuInit.
        let asked = unsafe { (driver.functions.cuDriverGetVersion)(&raw mut version) };
        driver
            .check("cuDriverGetVersion", asked)
            .map_err(OpenError::Init)?;
        driver.version = u32::try_from(version).unwrap_or(0);
        if driver.version < OLDEST {
            return Err(OpenError::Old {
                version: driver.version,
            });
        }
        // SAFETY: no arguments but flags, which must be 0.
        let started = unsafe { (driver.functions.cuInit)(0) };
        driver.check("cuInit", started).map_err(OpenError::Init)?;
        Ok(driver)
    }

    /// The newest CUDA that the driver serves: major * 1000 + minor * 10.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// The context of a device, counted from 0, that everything in this process shares, TensorRT included.
    ///
    /// # Errors
    /// [`OpenError::NoDevice`], or the driver's own failure.
    pub fn context(&self, ordinal: u32) -> Result<Context, OpenError> {
        let device = self.device(ordinal)?;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` outlives the call; the device is one of the driver's.
        let retained = unsafe { (self.functions.cuDevicePrimaryCtxRetain)(&raw mut raw, device.raw) };
        self.check("cuDevicePrimaryCtxRetain", retained)
            .map_err(OpenError::Init)?;
        Ok(Context::new(self.clone(), device, raw))
    }

    /// All devices, in the driver's order.
    ///
    /// # Errors
    /// [`OpenError::Init`] with the driver's own failure.
    pub fn devices(&self) -> Result<Vec<Device>, OpenError> {
        (0..self.count()?).map(|ordinal| self.device(ordinal)).collect()
    }

    fn count(&self) -> Result<u32, OpenError> {
        let mut count = 0;
        // SAFETY: `count` outlives the call.
        let counted = unsafe { (self.functions.cuDeviceGetCount)(&raw mut count) };
        self.check("cuDeviceGetCount", counted).map_err(OpenError::Init)?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    fn device(&self, ordinal: u32) -> Result<Device, OpenError> {
        let found = self.count()?;
        let Some(number) = i32::try_from(ordinal).ok().filter(|_| ordinal < found) else {
            return Err(OpenError::NoDevice {
                wanted: ordinal,
                found,
            });
        };
        self.describe(number).map_err(OpenError::Init)
    }

    fn describe(&self, number: i32) -> Result<Device, CudaError> {
        use CUdevice_attribute::{
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
            CU_DEVICE_ATTRIBUTE_INTEGRATED as INTEGRATED,
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT as MULTIPROCESSORS,
        };
        let functions = &self.functions;
        let mut raw = 0;
        // SAFETY: `raw` outlives the call.
        self.check("cuDeviceGet", unsafe {
            (functions.cuDeviceGet)(&raw mut raw, number)
        })?;
        let mut name = [0; 256];
        // SAFETY: the driver writes at most as much as it is told, with a NUL at the end.
        self.check("cuDeviceGetName", unsafe {
            (functions.cuDeviceGetName)(name.as_mut_ptr(), 255, raw)
        })?;
        // SAFETY: the last byte of `name` was not given away and is 0.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }
            .to_string_lossy()
            .into_owned();
        let attribute = |attribute| {
            let mut value: c_int = 0;
            // SAFETY: `value` outlives the call.
            let asked = unsafe { (functions.cuDeviceGetAttribute)(&raw mut value, attribute, raw) };
            self.check("cuDeviceGetAttribute", asked)
                .map(|()| u32::try_from(value).unwrap_or(0))
        };
        let mut memory_bytes = 0;
        // SAFETY: `memory_bytes` outlives the call.
        self.check("cuDeviceTotalMem", unsafe {
            (functions.cuDeviceTotalMem_v2)(&raw mut memory_bytes, raw)
        })?;
        Ok(Device {
            name,
            compute_capability: (attribute(MAJOR)?, attribute(MINOR)?),
            integrated: attribute(INTEGRATED)? != 0,
            multiprocessors: attribute(MULTIPROCESSORS)?,
            memory_bytes: memory_bytes as u64,
            raw,
        })
    }

    pub(crate) fn functions(&self) -> &Functions {
        &self.functions
    }

    /// What a call's result means.
    pub(crate) fn check(&self, call: &'static str, result: u32) -> Result<(), CudaError> {
        match result {
            SUCCESS => Ok(()),
            code => Err(self.error(call, code)),
        }
    }

    /// A failure in the driver's words.
    pub(crate) fn error(&self, call: &'static str, code: u32) -> CudaError {
        type Ask = unsafe extern "C" fn(u32, *mut *const c_char) -> u32;
        let words = |ask: Ask| {
            let mut words = ptr::null();
            // SAFETY: `words` outlives the call, which takes any number.
            let asked = unsafe { ask(code, &raw mut words) };
            if asked != SUCCESS || words.is_null() {
                return "unknown to this driver".to_owned();
            }
            // SAFETY: the driver's strings end with a NUL and live for ever.
            let words = unsafe { CStr::from_ptr(words) };
            words.to_string_lossy().into_owned()
        };
        CudaError {
            call,
            code,
            name: words(self.functions.cuGetErrorName),
            words: words(self.functions.cuGetErrorString),
        }
    }
}
