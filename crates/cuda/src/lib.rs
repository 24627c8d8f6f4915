//! The CUDA driver API, opened at run time instead of linked. [`Driver`] looks up every function before the first call, and
//! every failure is a [`CudaError`] with the driver's own name. The crate uses no function newer than CUDA 11.4, the
//! oldest version in JetPack 5.
//!
//! The crate has what an inference engine needs (streams, events, pinned and device memory, graphs) and launches no kernel
//! itself. Calls that give memory to the device are `unsafe`: only the caller knows how long it leaves the memory alone.

mod context;
mod device;
mod device_copies;
mod driver;
mod error;
mod functions;
mod graph;
mod memory;
mod stream;

pub use context::Context;
pub use device::{Device, devices};
pub use device_copies::RowCopy;
pub use driver::Driver;
pub use error::{CudaError, DriverOpenError};
pub use graph::Graph;
pub use memory::{DeviceMemory, HostMemory};
pub use stream::{Event, Stream, WaitMode};
