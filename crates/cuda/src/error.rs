//! The errors: the driver cannot be opened, or a call to it failed. They contain the driver's own names and texts.

use std::path::PathBuf;

/// The error when CUDA cannot be used on this machine.
#[derive(Debug, thiserror::Error)]
pub enum DriverOpenError {
    /// The driver's library was not found.
    #[error(
        "no CUDA driver was found ({reason}); hint: install nvidia-l4t-cuda (JetPack) on a Jetson, NVIDIA's driver elsewhere"
    )]
    NotFound {
        /// The dynamic loader's message.
        reason: String,
    },
    /// The library does not contain all functions of CUDA 11.4.
    #[error("the CUDA driver {} is older than CUDA 11.4: it has no {}", path.display(), missing.join(", "))]
    MissingFunctions {
        /// The library's path.
        path: PathBuf,
        /// The names of the functions.
        missing: Vec<&'static str>,
    },
    /// The driver reports a version before CUDA 11.4.
    #[error("the CUDA driver is for CUDA {}.{}, but at least 11.4 is needed", version / 1000, version % 1000 / 10)]
    TooOld {
        /// The reported version: major * 1000 + minor * 10.
        version: u32,
    },
    /// The driver could not be initialised.
    #[error("the CUDA driver could not be initialised")]
    Init(#[source] CudaError),
    /// The machine has no device with this number.
    #[error("there is no CUDA device {ordinal}: the driver reports {found} devices, counted from 0")]
    NoDevice {
        /// The requested device, counted from 0.
        ordinal: u32,
        /// The number of devices.
        found: u32,
    },
}

/// The error of a call to the driver. A call that starts work may report the failure of earlier work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {name} ({code}), {description}")]
pub struct CudaError {
    /// The function that returned the error.
    pub call: &'static str,
    /// The `CUresult`.
    pub code: u32,
    /// The code's name, such as `CUDA_ERROR_OUT_OF_MEMORY`.
    pub name: String,
    /// The driver's description of the code.
    pub description: String,
}

impl CudaError {
    /// Returns whether the driver works but finds no device.
    #[must_use]
    pub const fn is_no_device(&self) -> bool {
        self.code == 100
    }

    /// Returns whether there was not enough memory.
    #[must_use]
    pub const fn is_out_of_memory(&self) -> bool {
        self.code == 2
    }

    /// Returns whether the error is sticky: every later call of this process fails as well, and only a new process can use
    /// the device again.
    #[must_use]
    pub const fn is_sticky(&self) -> bool {
        // Deinitialised, unavailable, ECC errors, and kernel faults, which corrupt the context.
        matches!(
            self.code,
            4 | 46 | 214 | 226 | 700 | 702 | 708 | 709 | 710 | 714..=721 | 999
        )
    }
}
