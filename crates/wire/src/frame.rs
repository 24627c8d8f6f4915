//! The frame around every payload: magic, version, kind, length.
//!
//! ```text
//! 0      4        6      7            11
//! | RGTA | u16 LE | kind | u32 LE len | body (postcard, or a chunk's header and raw bytes)
//! ```

use thiserror::Error;

/// First bytes of every payload.
pub const MAGIC: [u8; 4] = *b"RGTA";
/// Bytes before the body.
pub const HEADER_LEN: usize = 11;
/// The newest version of the format that this program speaks.
pub const VERSION: u16 = 1;
/// The oldest version that this program still reads.
pub const OLDEST_VERSION: u16 = 1;
/// Largest accepted body. A chunk of 64 KiB and its header fit; nothing else comes near.
pub const MAX_BODY: usize = 128 * 1024;

/// A frame that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Shorter than its header.
    #[error("frame of {0} bytes is shorter than its {HEADER_LEN}-byte header")]
    Truncated(usize),
    /// Does not begin with the magic.
    #[error("payload does not begin with RGTA: another program publishes here")]
    Magic,
    /// A version that this program does not speak.
    #[error("frame has wire version {found}; this program speaks {OLDEST_VERSION} to {VERSION}")]
    Version {
        /// The frame's version.
        found: u16,
    },
    /// The length field and the payload differ, or it is beyond [`MAX_BODY`].
    #[error("frame states {stated} bytes of body and carries {carried}")]
    Length {
        /// Length field.
        stated: usize,
        /// Bytes that follow the header.
        carried: usize,
    },
    /// Another kind of message than the topic asks for, or an unknown one.
    #[error("frame of kind {found} where kind {expected} belongs")]
    Kind {
        /// The frame's kind.
        found: u8,
        /// The kind that belongs there.
        expected: u8,
    },
    /// The body is not the message that its kind promises.
    #[error("body of a kind {kind} frame cannot be read: {reason}")]
    Body {
        /// The frame's kind.
        kind: u8,
        /// Why.
        reason: String,
    },
}

/// Builds a frame around a body.
#[must_use]
pub fn encode(kind: u8, body: &[u8]) -> Vec<u8> {
    encode_parts(kind, &[body])
}

/// Builds a frame around a body that lies in parts: each is copied once.
pub(crate) fn encode_parts(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut frame = Vec::with_capacity(HEADER_LEN + length);
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&VERSION.to_le_bytes());
    frame.push(kind);
    // A body beyond u32 cannot be built: MAX_BODY bounds what the callers make.
    frame.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    for part in parts {
        frame.extend_from_slice(part);
    }
    frame
}

/// The length of the body that a frame's header states: for readers of a byte stream, which must know how much to read.
///
/// # Errors
/// [`FrameError`] when the header is not whole, not ours, or states more than any body can have.
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

/// The kind that a frame states, where one topic carries several.
#[must_use]
pub fn stated_kind(frame: &[u8]) -> Option<u8> {
    frame.get(6).copied()
}

/// Checks a frame's header and returns its version and body.
///
/// # Errors
/// [`FrameError`] naming what is wrong.
pub fn decode(expected_kind: u8, frame: &[u8]) -> Result<(u16, &[u8]), FrameError> {
    let Some((header, body)) = frame.split_at_checked(HEADER_LEN) else {
        return Err(FrameError::Truncated(frame.len()));
    };
    if header[..4] != MAGIC {
        return Err(FrameError::Magic);
    }
    let found = u16::from_le_bytes([header[4], header[5]]);
    if !(OLDEST_VERSION..=VERSION).contains(&found) {
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
