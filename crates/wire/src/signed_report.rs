//! Signed reports: a coordinator can verify that a message comes from its device, whichever broker delivered it.
//!
//! The signature covers the topic and the exact bytes of the message's frame, so nobody else can forge, change or redirect
//! a report. A recorded report can be sent again: states and inventories have growing numbers for that. Chunks of logs are
//! not signed, because the signed end of their stream has the hash of all of them, nor are heartbeats, because the next one
//! replaces a forged one. The daemons hold the keys and verify; this file does not.
//!
//! Body of a kind 13 frame: `public key (32 bytes) | signature (64 bytes) | frame of the message`.

use crate::{
    FrameKind,
    frame::{self, FrameError, MAX_BODY},
    topic::Topic,
};

/// The first bytes of every signed statement. They make a signature for one purpose invalid for any other.
const CONTEXT: &[u8] = b"regatta report 1\0";
const KIND: u8 = FrameKind::SignedReport.number();
const KEY: usize = 32;
const SIGNATURE: usize = 64;

/// A framed message with its device's key and signature: everything that a device publishes, except chunks and
/// heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedReport<'a> {
    /// The device's Ed25519 public key. The device's id is its fingerprint, so the key needs no other proof.
    pub public_key: [u8; KEY],
    /// The Ed25519 signature over [`Self::statement`].
    pub signature: [u8; SIGNATURE],
    /// The exact bytes of the framed message.
    pub message: &'a [u8],
}

impl<'a> SignedReport<'a> {
    /// The largest message in bytes, with its own frame.
    pub const MAX_MESSAGE: usize = MAX_BODY - KEY - SIGNATURE;

    /// Returns the bytes that the device signs.
    #[must_use]
    pub fn statement(topic: &Topic, message: &[u8]) -> Vec<u8> {
        let topic = topic.to_string();
        let mut bytes = Vec::with_capacity(CONTEXT.len() + topic.len() + 1 + message.len());
        bytes.extend_from_slice(CONTEXT);
        bytes.extend_from_slice(topic.as_bytes());
        // No topic contains a zero byte: no two statements have the same bytes.
        bytes.push(0);
        bytes.extend_from_slice(message);
        bytes
    }

    /// Encodes the report as a frame.
    ///
    /// # Errors
    /// [`FrameError::Length`] when the message exceeds [`Self::MAX_MESSAGE`].
    pub fn to_frame(&self) -> Result<Vec<u8>, FrameError> {
        if self.message.len() > Self::MAX_MESSAGE {
            return Err(FrameError::Length {
                stated: Self::MAX_MESSAGE,
                carried: self.message.len(),
            });
        }
        Ok(frame::encode_parts(
            KIND,
            &[&self.public_key, &self.signature, self.message],
        ))
    }

    /// Decodes a frame that holds a report. The caller must verify the signature.
    ///
    /// # Errors
    /// [`FrameError`] names the invalid part of the frame.
    pub fn from_frame(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let (_version, body) = frame::decode(KIND, bytes)?;
        let short = || FrameError::Body {
            kind: KIND,
            reason: "shorter than key and signature".to_owned(),
        };
        let (public_key, rest) = body.split_first_chunk().ok_or_else(short)?;
        let (signature, message) = rest.split_first_chunk().ok_or_else(short)?;
        Ok(Self {
            public_key: *public_key,
            signature: *signature,
            message,
        })
    }
}
