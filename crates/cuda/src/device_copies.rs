//! Work on device memory alone: zeros, and copies within it. Copies to and from the host are in `stream`.

use std::{ops::Range, ptr};

use cudarc::driver::sys::{CUDA_MEMCPY2D, CUmemorytype};

use crate::{error::CudaError, memory::DeviceMemory, stream::Stream};

/// A copy of rows of equal width. Their pitch may differ between the two memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowCopy {
    /// Bytes of a row.
    pub width: usize,
    pub rows: usize,
    /// Bytes from the beginning of a row to that of the next one in the source. The first row begins with the memory.
    pub source_pitch: usize,
    /// Bytes before the first row in the target.
    pub target_offset: usize,
    /// Bytes from the beginning of a row to that of the next one in the target.
    pub target_pitch: usize,
}

impl RowCopy {
    /// Returns the bytes up to the end of the last row, when the first row begins after `offset` bytes.
    const fn end(&self, offset: usize, pitch: usize) -> usize {
        offset + self.rows.saturating_sub(1) * pitch + self.width
    }
}

impl Stream {
    /// Adds zeros for a range of bytes.
    ///
    /// # Safety
    /// The memory exists until the stream has executed this.
    ///
    /// # Errors
    /// [`CudaError`] of `cuMemsetD8Async`, or of earlier work.
    ///
    /// # Panics
    /// When the range exceeds the memory.
    pub unsafe fn clear(&self, memory: &DeviceMemory, range: Range<usize>) -> Result<(), CudaError> {
        assert!(range.end <= memory.len(), "the range exceeds the memory");
        self.context().bind()?;
        let begin = memory.address() + range.start as u64;
        let clear = self.context().functions().cuMemsetD8Async;
        // SAFETY: the caller guarantees the memory, which is long enough.
        let result = unsafe { clear(begin, 0, range.len(), self.raw()) };
        self.context().check("cuMemsetD8Async", result)
    }

    /// Adds a copy of a range of bytes from one memory to the same range of another one.
    ///
    /// # Safety
    /// Both memories exist until the stream has executed the copy.
    ///
    /// # Errors
    /// [`CudaError`] of `cuMemcpyDtoDAsync`, or of earlier work.
    ///
    /// # Panics
    /// When the range exceeds either memory.
    pub unsafe fn copy_on_device(
        &self,
        to: &DeviceMemory,
        from: &DeviceMemory,
        range: Range<usize>,
    ) -> Result<(), CudaError> {
        assert!(
            range.end <= to.len().min(from.len()),
            "the copy exceeds the memory"
        );
        self.context().bind()?;
        let begin = range.start as u64;
        let copy = self.context().functions().cuMemcpyDtoDAsync_v2;
        // SAFETY: the caller guarantees the memories, and both are long enough.
        let result = unsafe {
            copy(
                to.address() + begin,
                from.address() + begin,
                range.len(),
                self.raw(),
            )
        };
        self.context().check("cuMemcpyDtoDAsync", result)
    }

    /// Adds a copy of rows from one memory to another one.
    ///
    /// # Safety
    /// Both memories exist until the stream has executed the copy.
    ///
    /// # Errors
    /// [`CudaError`] of `cuMemcpy2DAsync`, or of earlier work.
    ///
    /// # Panics
    /// When the rows exceed either memory.
    pub unsafe fn copy_rows(
        &self,
        to: &DeviceMemory,
        from: &DeviceMemory,
        rows: &RowCopy,
    ) -> Result<(), CudaError> {
        assert!(
            rows.end(rows.target_offset, rows.target_pitch) <= to.len()
                && rows.end(0, rows.source_pitch) <= from.len(),
            "the rows exceed the memory"
        );
        self.context().bind()?;
        let copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: ptr::null(),
            srcDevice: from.address(),
            srcArray: ptr::null_mut(),
            srcPitch: rows.source_pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: ptr::null_mut(),
            dstDevice: to.address() + rows.target_offset as u64,
            dstArray: ptr::null_mut(),
            dstPitch: rows.target_pitch,
            WidthInBytes: rows.width,
            Height: rows.rows,
        };
        // SAFETY: the caller guarantees the memories, both are long enough, and `copy` outlives the call.
        let result = unsafe { (self.context().functions().cuMemcpy2DAsync_v2)(&raw const copy, self.raw()) };
        self.context().check("cuMemcpy2DAsync", result)
    }
}
