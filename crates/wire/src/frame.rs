//! The frame of every MQTT payload: magic, version, kind, length, body. This file does not know what a body contains.
//!
//! ```text
//! 0      4        6      7            11
//! | RGTA | u16 LE | kind | u32 LE len | body (postcard, or a chunk's header and raw bytes)
//! ```

use thiserror::Error;

use crate::FrameKind;

/// The first bytes of every frame.
pub const MAGIC: [u8; 4] = *b"RGTA";
/// The length of the header in bytes.
pub const HEADER_LEN: usize = 11;
/// The wire version that this program writes, which is the newest that it reads.
pub const VERSION: u16 = 1;
/// The oldest wire version that this program reads.
pub const MIN_VERSION: u16 = 1;
/// The largest body in bytes. A chunk of 64 KiB with its header fits; all other messages are smaller.
pub const MAX_BODY: usize = 128 * 1024;

/// The error for a frame that cannot be encoded or decoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The frame is shorter than its header.
    #[error("frame of {0} bytes is shorter than its {HEADER_LEN}-byte header")]
    Truncated(usize),
    /// The frame does not begin with [`MAGIC`].
    #[error("payload does not begin with RGTA; another program publishes on this topic")]
    Magic,
    /// The frame has a version that this program does not read.
    #[error("frame has wire version {found}; this program reads {MIN_VERSION} to {VERSION}")]
    Version {
        /// The frame's version.
        found: u16,
    },
    /// The length field and the body differ, or the body exceeds the largest length.
    #[error("frame states a body of {stated} bytes, but has {carried}")]
    Length {
        /// The length field, or the largest length that the message may have.
        stated: usize,
        /// The number of bytes after the header.
        carried: usize,
    },
    /// The frame has another kind than its topic requires.
    #[error("frame has kind {found}, but kind {expected} is required here")]
    Kind {
        /// The frame's kind.
        found: u8,
        /// The required kind.
        expected: u8,
    },
    /// The body is not a valid message of its kind.
    #[error("body of a frame of kind {kind} is invalid: {reason}")]
    Body {
        /// The frame's kind.
        kind: u8,
        reason: String,
    },
}

/// Encodes a frame.
#[must_use]
pub fn encode(kind: u8, body: &[u8]) -> Vec<u8> {
    encode_parts(kind, &[body])
}

/// Encodes a frame whose body is given in parts. Each part is copied once.
pub(crate) fn encode_parts(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut frame = Vec::with_capacity(HEADER_LEN + length);
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&VERSION.to_le_bytes());
    frame.push(kind);
    // The length always fits: the callers check their bodies against MAX_BODY or MAX_DATA.
    frame.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    for part in parts {
        frame.extend_from_slice(part);
    }
    frame
}

/// Returns the length of the body from a frame's header. A reader of a byte stream needs it to know how much to read.
///
/// # Errors
/// [`FrameError`] when the header is incomplete, does not begin with [`MAGIC`], or states more than [`MAX_BODY`].
pub fn stated_length(header: &[u8]) -> Result<usize, FrameError> {
    let Some((header, body)) = header.split_at_checked(HEADER_LEN) else {
        return Err(FrameError::Truncated(header.len()));
    };
    if header[..4] != MAGIC {
        return Err(FrameError::Magic);
    }
    let stated = u32::from_le_bytes([header[7], header[8], header[9], header[10]]) as usize;
    if stated > MAX_BODY {
        return Err(FrameError::Length {
            stated,
            carried: body.len(),
        });
    }
    Ok(stated)
}

/// Returns the kind from a frame's header, for topics with messages of several kinds; `None` where it is missing or unknown.
#[must_use]
pub fn stated_kind(frame: &[u8]) -> Option<FrameKind> {
    FrameKind::of(*frame.get(6)?)
}

/// Checks a frame's header and returns its version and body.
///
/// # Errors
/// [`FrameError`] names the invalid part of the frame.
pub fn decode(expected_kind: u8, frame: &[u8]) -> Result<(u16, &[u8]), FrameError> {
    let Some((header, body)) = frame.split_at_checked(HEADER_LEN) else {
        return Err(FrameError::Truncated(frame.len()));
    };
    if header[..4] != MAGIC {
        return Err(FrameError::Magic);
    }
    let found = u16::from_le_bytes([header[4], header[5]]);
    if !(MIN_VERSION..=VERSION).contains(&found) {
        return Err(FrameError::Version { found });
    }
    let stated = u32::from_le_bytes([header[7], header[8], header[9], header[10]]) as usize;
    if stated != body.len() || stated > MAX_BODY {
        return Err(FrameError::Length {
            stated,
            carried: body.len(),
        });
    }
    if header[6] != expected_kind {
        return Err(FrameError::Kind {
            found: header[6],
            expected: expected_kind,
        });
    }
    Ok((found, body))
}
