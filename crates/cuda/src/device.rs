//! The devices of a driver and their properties.

use std::ffi::{CStr, c_int};

use cudarc::driver::sys::{CUdevice, CUdevice_attribute};

use crate::{
    driver::Driver,
    error::{CudaError, DriverOpenError},
};

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

/// Returns the GPUs in the driver's order. Empty if there is no driver or it finds none.
///
/// # Errors
/// [`DriverOpenError`] when there is a driver that does not work.
pub fn devices() -> Result<Vec<Device>, DriverOpenError> {
    match Driver::open() {
        Ok(driver) => driver.devices(),
        Err(DriverOpenError::NotFound { .. }) => Ok(Vec::new()),
        Err(DriverOpenError::Init(error)) if error.is_no_device() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

impl Driver {
    /// Returns all devices in the driver's order.
    ///
    /// # Errors
    /// [`DriverOpenError::Init`] with the driver's error.
    pub fn devices(&self) -> Result<Vec<Device>, DriverOpenError> {
        (0..self.device_count()?)
            .map(|ordinal| self.device(ordinal))
            .collect()
    }

    fn device_count(&self) -> Result<u32, DriverOpenError> {
        let mut count = 0;
        // SAFETY: `count` outlives the call.
        let result = unsafe { (self.functions().cuDeviceGetCount)(&raw mut count) };
        self.check("cuDeviceGetCount", result)
            .map_err(DriverOpenError::Init)?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    pub(crate) fn device(&self, ordinal: u32) -> Result<Device, DriverOpenError> {
        let found = self.device_count()?;
        let Some(number) = i32::try_from(ordinal).ok().filter(|_| ordinal < found) else {
            return Err(DriverOpenError::NoDevice { ordinal, found });
        };
        self.read_device(number).map_err(DriverOpenError::Init)
    }

    fn read_device(&self, number: i32) -> Result<Device, CudaError> {
        use CUdevice_attribute::{
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
            CU_DEVICE_ATTRIBUTE_INTEGRATED as INTEGRATED,
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT as MULTIPROCESSORS,
        };
        let functions = self.functions();
        let mut raw = 0;
        // SAFETY: `raw` outlives the call.
        self.check("cuDeviceGet", unsafe {
            (functions.cuDeviceGet)(&raw mut raw, number)
        })?;
        let mut name = [0; 256];
        // SAFETY: the driver writes at most 255 bytes, with a NUL at the end.
        self.check("cuDeviceGetName", unsafe {
            (functions.cuDeviceGetName)(name.as_mut_ptr(), 255, raw)
        })?;
        // SAFETY: the driver cannot write the last byte of `name`, which is 0.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }
            .to_string_lossy()
            .into_owned();
        let attribute = |attribute| {
            let mut value: c_int = 0;
            // SAFETY: `value` outlives the call.
            let result = unsafe { (functions.cuDeviceGetAttribute)(&raw mut value, attribute, raw) };
            self.check("cuDeviceGetAttribute", result)
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
}
