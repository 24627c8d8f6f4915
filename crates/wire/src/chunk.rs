//! Log chunks: a fixed header and raw bytes, so that neither side copies a log through a serialiser.
//!
//! Body of a kind 5 frame: `u64 LE offset | u32 LE CRC-32C of the bytes | bytes`. The topic names run and stream. This
//! file does not put chunks together: the coordinator's ingest does.

use crate::{
    FrameKind,
    frame::{self, FrameError},
};

const KIND: u8 = FrameKind::Chunk.number();
/// The largest number of log bytes in one chunk.
pub const MAX_DATA: usize = 64 * 1024;
const CHUNK_HEADER: usize = 12;

/// A chunk: consecutive bytes of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The position of the first byte in the stream.
    pub offset: u64,
    /// The stream's bytes, at most [`MAX_DATA`].
    pub data: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// Encodes the chunk as a frame.
    ///
    /// # Errors
    /// [`FrameError::Length`] when the data exceeds [`MAX_DATA`].
    pub fn to_frame(&self) -> Result<Vec<u8>, FrameError> {
        if self.data.len() > MAX_DATA {
            return Err(FrameError::Length {
                stated: MAX_DATA,
                carried: self.data.len(),
            });
        }
        let offset = self.offset.to_le_bytes();
        let crc = crc32c::crc32c(self.data).to_le_bytes();
        Ok(frame::encode_parts(KIND, &[&offset, &crc, self.data]))
    }

    /// Decodes a frame that holds a chunk, and checks its CRC.
    ///
    /// # Errors
    /// [`FrameError`] names the invalid part of the frame.
    pub fn from_frame(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let (_version, body) = frame::decode(KIND, bytes)?;
        let invalid = |reason: &str| FrameError::Body {
            kind: KIND,
            reason: reason.to_owned(),
        };
        let (header, data) = body
            .split_at_checked(CHUNK_HEADER)
            .ok_or_else(|| invalid("shorter than its header"))?;
        let (offset, crc) = header.split_at(8);
        let offset = u64::from_le_bytes(offset.try_into().map_err(|_| invalid("no offset"))?);
        let crc = u32::from_le_bytes(crc.try_into().map_err(|_| invalid("no CRC"))?);
        if data.len() > MAX_DATA {
            return Err(FrameError::Length {
                stated: MAX_DATA,
                carried: data.len(),
            });
        }
        if crc != crc32c::crc32c(data) {
            return Err(invalid("CRC-32C differs"));
        }
        if offset.checked_add(data.len() as u64).is_none() {
            return Err(invalid("offset and length exceed 64 bits"));
        }
        Ok(Self { offset, data })
    }
}

/// A message on a log topic.
#[derive(Debug, PartialEq, Eq)]
pub enum LogMessage<'a> {
    /// A chunk of the stream.
    Chunk(Chunk<'a>),
    End(crate::message::StreamEnd),
}

impl<'a> LogMessage<'a> {
    /// Decodes a frame by its kind.
    ///
    /// # Errors
    /// [`FrameError`] names the invalid part of the frame.
    pub fn from_frame(bytes: &'a [u8]) -> Result<Self, FrameError> {
        use crate::message::{Message as _, StreamEnd};
        if frame::stated_kind(bytes) == Some(StreamEnd::KIND) {
            return StreamEnd::from_frame(bytes).map(Self::End);
        }
        Chunk::from_frame(bytes).map(Self::Chunk)
    }
}
