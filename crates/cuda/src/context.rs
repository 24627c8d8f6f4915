//! A device's primary context, and how threads come to use it.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use cudarc::driver::sys::{CUcontext, CUdevice};

use crate::{driver::Driver, error::CudaError, functions::Functions};

/// What a device says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name, such as `Orin`.
    pub name: String,
    /// Major and minor compute capability: 8.7 for Orin, 7.2 for Xavier.
    pub compute_capability: (u32, u32),
    /// Whether it shares the host's memory, as all Jetsons do.
    pub integrated: bool,
    /// Its streaming multiprocessors: 16 on AGX Orin.
    pub multiprocessors: u32,
    /// Bytes of memory that it has, or shares.
    pub memory_bytes: u64,
    pub(crate) raw: CUdevice,
}

/// A device's primary context. Clones are the same one; the last gives it back.
#[derive(Clone)]
pub struct Context(Arc<Primary>);

struct Primary {
    driver: Driver,
    device: Device,
    raw: CUcontext,
    /// Tells this one from others that may have had the same address.
    number: u64,
}

// SAFETY: the driver's contexts may be used from any thread; it locks on its own.
unsafe impl Send for Primary {}
// SAFETY: as above.
unsafe impl Sync for Primary {}

/// Numbers of contexts, from 1.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The context that this thread uses, 0 for none.
    static BOUND: Cell<u64> = const { Cell::new(0) };
}

impl Context {
    pub(crate) fn new(driver: Driver, device: Device, raw: CUcontext) -> Self {
        Self(Arc::new(Primary {
            driver,
            device,
            raw,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
        }))
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.0.driver
    }

    /// Makes it the calling thread's own, which is what TensorRT works with. Costs a comparison when it is already.
    ///
    /// # Errors
    /// [`CudaError`].
    pub fn bind(&self) -> Result<(), CudaError> {
        if BOUND.get() == self.0.number {
            return Ok(());
        }
        // SAFETY: the context lives.
        let set = unsafe { (self.functions().cuCtxSetCurrent)(self.0.raw) };
        self.check("cuCtxSetCurrent", set)?;
        BOUND.set(self.0.number);
        Ok(())
    }

    /// Bytes of device memory that are free, and that there are.
    ///
    /// # Errors
    /// [`CudaError`].
    pub fn memory(&self) -> Result<(usize, usize), CudaError> {
        self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both numbers outlive the call.
        let asked = unsafe { (self.functions().cuMemGetInfo_v2)(&raw mut free, &raw mut total) };
        self.check("cuMemGetInfo", asked)?;
        Ok((free, total))
    }

    pub(crate) fn functions(&self) -> &Functions {
        self.0.driver.functions()
    }

    pub(crate) fn check(&self, call: &'static str, result: u32) -> Result<(), CudaError> {
        self.0.driver.check(call, result)
    }

    pub(crate) fn error(&self, call: &'static str, code: u32) -> CudaError {
        self.0.driver.error(call, code)
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        // SAFETY: retained once, released once. What it says of an earlier fault has been told by then.
        unsafe { (self.driver.functions().cuDevicePrimaryCtxRelease_v2)(self.device.raw) };
    }
}
