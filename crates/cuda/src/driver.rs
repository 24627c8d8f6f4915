//! The CUDA driver: finds and opens its library, and reads the driver's version. The other files call its
//! functions.

use std::{
    error::Error as _,
    ffi::{CStr, c_char},
    path::Path,
    ptr,
    sync::Arc,
};

use libloading::Library;

use crate::{
    error::{CudaError, DriverOpenError},
    functions::Functions,
};

/// The library's file names. The driver installs the first; the second may be a stub of the CUDA toolkit.
const LIBRARY_NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// CUDA 11.4, in the format of `cuDriverGetVersion`.
const MIN_VERSION: u32 = 11_040;

/// `CUDA_SUCCESS`.
const SUCCESS: u32 = 0;

/// The CUDA driver, opened and initialised. Clones share it.
#[derive(Clone)]
pub struct Driver {
    functions: Arc<Functions>,
    version: u32,
}

impl Driver {
    /// Opens and initialises the system's driver.
    ///
    /// # Errors
    /// [`DriverOpenError`] when there is no usable driver.
    pub fn open() -> Result<Self, DriverOpenError> {
        let mut reasons = Vec::new();
        for name in LIBRARY_NAMES {
            match Self::open_file(Path::new(name)) {
                Err(DriverOpenError::NotFound { reason }) => reasons.push(reason),
                result => return result,
            }
        }
        Err(DriverOpenError::NotFound {
            reason: reasons.join("; "),
        })
    }

    /// Opens and initialises the driver in a file.
    ///
    /// # Errors
    /// [`DriverOpenError`] when the file is not a usable driver.
    pub fn open_file(path: &Path) -> Result<Self, DriverOpenError> {
        let not_found = |error: libloading::Error| DriverOpenError::NotFound {
            // The source is the loader's message; the error itself only names the call.
            reason: error.source().unwrap_or(&error).to_string(),
        };
        // SAFETY: loading runs the library's initialisers. It is NVIDIA's driver, by its file name or by the caller's
        // choice.
        let library = unsafe { Library::new(path) }.map_err(not_found)?;
        let missing = Functions::missing(&library);
        if !missing.is_empty() {
            return Err(DriverOpenError::MissingFunctions {
                path: path.to_owned(),
                missing,
            });
        }
        // SAFETY: the library has all of the driver's functions.
        let functions = Arc::new(unsafe { Functions::load(library) }.map_err(not_found)?);
        let mut driver = Self {
            functions,
            version: 0,
        };
        let mut version = 0;
        // SAFETY: `version` outlives the call, which is allowed before cuInit.
        let result = unsafe { (driver.functions.cuDriverGetVersion)(&raw mut version) };
        driver
            .check("cuDriverGetVersion", result)
            .map_err(DriverOpenError::Init)?;
        driver.version = u32::try_from(version).unwrap_or(0);
        if driver.version < MIN_VERSION {
            return Err(DriverOpenError::TooOld {
                version: driver.version,
            });
        }
        // SAFETY: the only argument is the flags, which must be 0.
        let result = unsafe { (driver.functions.cuInit)(0) };
        driver.check("cuInit", result).map_err(DriverOpenError::Init)?;
        Ok(driver)
    }

    /// Returns the newest CUDA version that the driver supports: major * 1000 + minor * 10.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    pub(crate) fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Turns a call's result into an error, except `CUDA_SUCCESS`.
    pub(crate) fn check(&self, call: &'static str, result: u32) -> Result<(), CudaError> {
        match result {
            SUCCESS => Ok(()),
            code => Err(self.error(call, code)),
        }
    }

    /// Creates the error for a result code, with the driver's name and description of it.
    pub(crate) fn error(&self, call: &'static str, code: u32) -> CudaError {
        type TextOfCode = unsafe extern "C" fn(u32, *mut *const c_char) -> u32;
        let text = |function: TextOfCode| {
            let mut text = ptr::null();
            // SAFETY: `text` outlives the call, which takes any number.
            let result = unsafe { function(code, &raw mut text) };
            if result != SUCCESS || text.is_null() {
                return "unknown to this driver".to_owned();
            }
            // SAFETY: the driver's strings end with a NUL and are static.
            let text = unsafe { CStr::from_ptr(text) };
            text.to_string_lossy().into_owned()
        };
        CudaError {
            call,
            code,
            name: text(self.functions.cuGetErrorName),
            description: text(self.functions.cuGetErrorString),
        }
    }
}
