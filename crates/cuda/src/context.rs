//! A device and its primary context, which threads bind before they call the driver.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use cudarc::driver::sys::{CUcontext, CUdevice};

use crate::{driver::Driver, error::CudaError, functions::Functions};

/// A CUDA device, as the driver describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The device's name, such as `Orin`.
    pub name: String,
    /// The compute capability, major and minor: 8.7 for Orin, 7.2 for Xavier.
    pub compute_capability: (u32, u32),
    /// Whether the device shares the host's memory, as on every Jetson.
    pub integrated: bool,
    /// The number of streaming multiprocessors: 16 on AGX Orin.
    pub multiprocessors: u32,
    /// The device's own or shared memory in bytes.
    pub memory_bytes: u64,
    pub(crate) raw: CUdevice,
}

/// A device's primary context. Clones share it; dropping the last one releases it.
#[derive(Clone)]
pub struct Context(Arc<PrimaryContext>);

struct PrimaryContext {
    driver: Driver,
    device: Device,
    raw: CUcontext,
    /// A number of its own, because a later context may get the same address.
    number: u64,
}

// SAFETY: any thread may use the driver's contexts; the driver locks them.
unsafe impl Send for PrimaryContext {}
// SAFETY: as above.
unsafe impl Sync for PrimaryContext {}

/// The next context's number, from 1.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The number of the context that this thread has bound, 0 for none.
    static BOUND: Cell<u64> = const { Cell::new(0) };
}

impl Context {
    pub(crate) fn new(driver: Driver, device: Device, raw: CUcontext) -> Self {
        Self(Arc::new(PrimaryContext {
            driver,
            device,
            raw,
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
        }))
    }

    /// Returns the context's device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Returns the context's driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.0.driver
    }

    /// Binds the context to the calling thread; TensorRT uses the bound context. Costs one comparison when it is bound
    /// already.
    ///
    /// # Errors
    /// [`CudaError`] of `cuCtxSetCurrent`.
    pub fn bind(&self) -> Result<(), CudaError> {
        if BOUND.get() == self.0.number {
            return Ok(());
        }
        // SAFETY: the context exists while `self` does.
        let result = unsafe { (self.functions().cuCtxSetCurrent)(self.0.raw) };
        self.check("cuCtxSetCurrent", result)?;
        BOUND.set(self.0.number);
        Ok(())
    }

    /// Returns the free and the total device memory in bytes.
    ///
    /// # Errors
    /// [`CudaError`] of `cuMemGetInfo`.
    pub fn memory(&self) -> Result<(usize, usize), CudaError> {
        self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both numbers outlive the call.
        let result = unsafe { (self.functions().cuMemGetInfo_v2)(&raw mut free, &raw mut total) };
        self.check("cuMemGetInfo", result)?;
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

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        // SAFETY: retained once, released once. The result only repeats an earlier error, which was reported then.
        unsafe { (self.driver.functions().cuDevicePrimaryCtxRelease_v2)(self.device.raw) };
    }
}
