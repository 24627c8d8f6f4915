//! What can go wrong: the driver is not there or too old, or a call of it failed.

use std::path::PathBuf;

/// CUDA cannot be used on this machine.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no driver.
    #[error(
        "no CUDA driver was found ({reason}); on a Jetson it belongs to JetPack (nvidia-l4t-cuda), elsewhere to NVIDIA's driver"
    )]
    NotFound {
        /// The loader's words.
        reason: String,
    },
    /// The driver lacks functions that CUDA 11.4 has.
    #[error("the CUDA driver {} is older than CUDA 11.4: it lacks {}", path.display(), missing.join(", "))]
    Lacks {
        /// Which library.
        path: PathBuf,
        /// The functions.
        missing: Vec<&'static str>,
    },
    /// The driver says that it is older.
    #[error("the CUDA driver is for CUDA {}.{}, but at least 11.4 is needed", version / 1000, version % 1000 / 10)]
    Old {
        /// Its version: major * 1000 + minor * 10.
        version: u32,
    },
    /// The driver does not start.
    #[error("the CUDA driver does not start")]
    Init(#[source] CudaError),
    /// It starts and has no device of that number.
    #[error("the CUDA driver finds {found} devices here, so there is no device {wanted}")]
    NoDevice {
        /// Which was wanted, counted from 0.
        wanted: u32,
        /// How many there are.
        found: u32,
    },
}

/// A call of the driver that failed. A call that starts work may report what an earlier one did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {name} ({code}), {words}")]
pub struct CudaError {
    /// The function.
    pub call: &'static str,
    /// `CUresult`.
    pub code: u32,
    /// Its name, such as `CUDA_ERROR_OUT_OF_MEMORY`.
    pub name: String,
    /// The driver's words about it.
    pub words: String,
}

impl CudaError {
    /// Whether the driver works and finds no device.
    #[must_use]
    pub const fn is_no_device(&self) -> bool {
        self.code == 100
    }

    /// Whether memory did not suffice.
    #[must_use]
    pub const fn is_out_of_memory(&self) -> bool {
        self.code == 2
    }

    /// Whether the device is lost to this process: every later call fails as well, and only a new process helps.
    #[must_use]
    pub const fn is_sticky(&self) -> bool {
        // Deinitialised, unavailable, ECC, contained or not, and the faults of a kernel, which poison the context.
        matches!(
            self.code,
            4 | 46 | 214 | 226 | 700 | 702 | 708 | 709 | 710 | 714..=721 | 999
        )
    }
}
