//! A device's primary context, which threads bind before they call the driver.

use std::{
    cell::Cell,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use cudarc::driver::sys::CUcontext;

use crate::{
    device::Device,
    driver::Driver,
    error::{CudaError, DriverOpenError},
    functions::Functions,
};

/// A device's primary context. Clones share it; dropping the last one releases it.
#[derive(Clone)]
pub struct Context(Arc<PrimaryContext>);

struct PrimaryContext {
    driver: Driver,
    device: Device,
    raw: CUcontext,
    /// A unique number, because a later context may have the same address.
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

impl Driver {
    /// Retains the primary context of a device, counted from 0. Everything in the process shares it, including TensorRT.
    ///
    /// # Errors
    /// [`DriverOpenError::NoDevice`], or [`DriverOpenError::Init`] with the driver's error.
    pub fn context(&self, ordinal: u32) -> Result<Context, DriverOpenError> {
        let device = self.device(ordinal)?;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` outlives the call, and the driver returned the device.
        let result = unsafe { (self.functions().cuDevicePrimaryCtxRetain)(&raw mut raw, device.raw) };
        self.check("cuDevicePrimaryCtxRetain", result)
            .map_err(DriverOpenError::Init)?;
        Ok(Context(Arc::new(PrimaryContext {
            driver: self.clone(),
            device,
            raw,
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
        })))
    }
}

impl Context {
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
