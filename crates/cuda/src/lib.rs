//! CUDA's driver without linking it: opened at run time, every function looked up before the first call, every failure an
//! error with the driver's own name for it. Binds nothing newer than CUDA 11.4, the oldest that JetPack 5 has.
//!
//! It has what running an engine takes (streams, events, pinned and device memory, graphs) and launches no kernel of its
//! own. Calls that hand memory to the device are `unsafe`: nobody but the caller knows how long it stays untouched.

mod context;
mod driver;
mod error;
mod functions;
mod graph;
mod memory;
mod stream;

pub use context::{Context, Device};
pub use driver::Driver;
pub use error::{CudaError, OpenError};
pub use graph::Graph;
pub use memory::{DeviceMemory, HostMemory};
pub use stream::{Event, Stream, Wait};
