//! The driver's functions that this crate uses, as pointers into the library.
//!
//! The compiler checks each type against cudarc's bindings of CUDA 11.4, so that no function is newer and no argument differs.
//! The calls do not use those bindings, whose result is an enum of the codes in 11.4. A code of a later driver would be undefined
//! behaviour. Here a result is a number (docs/decisions/0050-cuda-by-cudarc-types.md).

#![expect(non_snake_case, reason = "the driver's own names")]

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};

use cudarc::driver::sys::{
    self, CUDA_MEMCPY2D, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUgraph, CUgraphExec,
    CUgraphNode, CUstream, CUstreamCaptureMode,
};
use libloading::Library;

macro_rules! functions {
    ($($name:ident($($argument:ty),*);)*) => {
        /// The driver's functions, with the library that keeps them loaded.
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> u32,)*
            pub(crate) cuGetErrorName: unsafe extern "C" fn(u32, *mut *const c_char) -> u32,
            pub(crate) cuGetErrorString: unsafe extern "C" fn(u32, *mut *const c_char) -> u32,
            _library: Library,
        }

        $(const _: unsafe fn($($argument),*) -> sys::CUresult = sys::$name;)*

        impl Functions {
            /// Returns the names of the functions that are missing from `library`.
            pub(crate) fn missing(library: &Library) -> Vec<&'static str> {
                [$(stringify!($name),)* "cuGetErrorName", "cuGetErrorString"]
                    .into_iter()
                    // SAFETY: the symbol is only looked up, not used.
                    .filter(|name| unsafe { library.get::<*const c_void>(name.as_bytes()) }.is_err())
                    .collect()
            }

            /// Looks up all functions in the CUDA driver's library.
            ///
            /// # Safety
            /// `library` is the CUDA driver.
            pub(crate) unsafe fn load(library: Library) -> Result<Self, libloading::Error> {
                // SAFETY: the caller guarantees the library. The types are those of the bindings except for the result,
                // which is an int in C, and the library is kept for as long as the pointers.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(stringify!($name).as_bytes())?,)*
                        cuGetErrorName: *library.get(b"cuGetErrorName")?,
                        cuGetErrorString: *library.get(b"cuGetErrorString")?,
                        _library: library,
                    })
                }
            }
        }
    };
}

functions! {
    cuInit(c_uint);
    cuDriverGetVersion(*mut c_int);
    cuDeviceGetCount(*mut c_int);
    cuDeviceGet(*mut CUdevice, c_int);
    cuDeviceGetName(*mut c_char, c_int, CUdevice);
    cuDeviceGetAttribute(*mut c_int, CUdevice_attribute, CUdevice);
    cuDeviceTotalMem_v2(*mut usize, CUdevice);
    cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
    cuDevicePrimaryCtxRelease_v2(CUdevice);
    cuCtxSetCurrent(CUcontext);
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemAlloc_v2(*mut CUdeviceptr, usize);
    cuMemFree_v2(CUdeviceptr);
    cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    cuMemFreeHost(*mut c_void);
    cuMemHostGetDevicePointer_v2(*mut CUdeviceptr, *mut c_void, c_uint);
    cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream);
    cuMemcpyDtoHAsync_v2(*mut c_void, CUdeviceptr, usize, CUstream);
    cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, usize, CUstream);
    cuMemcpy2DAsync_v2(*const CUDA_MEMCPY2D, CUstream);
    cuMemsetD8Async(CUdeviceptr, c_uchar, usize, CUstream);
    cuStreamCreate(*mut CUstream, c_uint);
    cuStreamDestroy_v2(CUstream);
    cuStreamSynchronize(CUstream);
    cuStreamWaitEvent(CUstream, CUevent, c_uint);
    cuStreamBeginCapture_v2(CUstream, CUstreamCaptureMode);
    cuStreamEndCapture(CUstream, *mut CUgraph);
    cuEventCreate(*mut CUevent, c_uint);
    cuEventDestroy_v2(CUevent);
    cuEventRecord(CUevent, CUstream);
    cuEventQuery(CUevent);
    cuEventSynchronize(CUevent);
    cuGraphGetNodes(CUgraph, *mut CUgraphNode, *mut usize);
    cuGraphInstantiateWithFlags(*mut CUgraphExec, CUgraph, c_ulonglong);
    cuGraphDestroy(CUgraph);
    cuGraphExecDestroy(CUgraphExec);
    cuGraphLaunch(CUgraphExec, CUstream);
}
