//! An input of a network of a loop that is written on the host, stream by stream, and copied to the device through pinned memory.

use regatta_cuda::{CudaError, Stream};

use super::{
    convert::Conversion,
    memory::Buffer,
    tensors::{InputRow, Row},
};

/// An input that is written on the host.
pub(super) struct WrittenInput {
    input: InputRow,
    buffer: Buffer,
    /// The values as they are written, if the engine needs another type.
    values: Vec<u8>,
}

impl WrittenInput {
    /// Returns the input with a buffer for `rows` streams.
    pub(super) fn new(input: InputRow, buffer: Buffer, rows: usize) -> Self {
        let values = if input.conversion == Conversion::None {
            0
        } else {
            rows * input.part.len()
        };
        Self {
            input,
            buffer,
            values: vec![0; values],
        }
    }

    /// Returns the input of a stream.
    pub(super) fn of(&mut self, stream: usize) -> &mut [u8] {
        let (bytes, row) = if self.input.conversion == Conversion::None {
            (self.buffer.bytes_mut(), self.input.row.bytes())
        } else {
            (&mut self.values[..], self.input.part.len())
        };
        &mut bytes[stream * row..][..row]
    }

    /// Converts the values of a stream to the engine's type.
    pub(super) fn convert(&mut self, stream: usize) {
        if self.input.conversion != Conversion::None {
            let (from, to) = (self.input.part.len(), self.input.row.bytes());
            let place = &mut self.buffer.bytes_mut()[stream * to..][..to];
            self.input
                .conversion
                .put(&self.values[stream * from..][..from], place);
        }
    }

    /// Returns the tensor and its address on the device.
    pub(super) fn placed(&self) -> (&Row, u64) {
        (&self.input.row, self.buffer.address())
    }

    /// Enqueues a copy of the first `rows` streams to the device.
    ///
    /// # Safety
    /// Until the stream has completed the copy, the input must live and not be written.
    pub(super) unsafe fn bring(&self, stream: &Stream, rows: usize) -> Result<(), CudaError> {
        // SAFETY: the caller guarantees it.
        unsafe { self.buffer.bring(stream, rows * self.input.row.bytes()) }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use regatta_cuda::Driver;

    use super::*;
    use crate::{subjects::fake_engine::installation, tensorrt::convert::Element};

    #[test]
    fn values_are_converted_to_the_engines_type() {
        let driver = Driver::open_file(&installation().cuda.unwrap()).unwrap();
        let context = driver.context(0).unwrap();
        let row = Row {
            name: CString::new("token").unwrap(),
            element: Element::Int64,
            elements: 1,
            dims: Vec::new(),
        };
        let input = InputRow {
            row,
            part: 8..12,
            conversion: Conversion::ToLong,
        };
        let buffer = Buffer::new(&context, 2 * 8, true).unwrap();
        let mut written = WrittenInput::new(input, buffer, 2);
        for (stream, number) in [-7_i32, 51_865].into_iter().enumerate() {
            written.of(stream).copy_from_slice(&number.to_le_bytes());
            written.convert(stream);
        }
        let expected = [-7_i64, 51_865].map(i64::to_le_bytes);
        assert_eq!(written.buffer.bytes(), expected.concat());
    }
}
