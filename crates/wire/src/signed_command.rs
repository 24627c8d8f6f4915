//! Signed commands: a device can verify that a command comes from its coordinator, whichever broker delivered it.
//!
//! The signature covers the device, the run, a number that only grows, and the exact bytes of the command's frame. Nobody
//! else can therefore forge, change, redirect or replay a command. The daemons hold the keys and store the numbers; this
//! file does not.

use regatta_types::{DeviceId, RunId};
use serde::{Deserialize, Serialize};

use crate::{FrameKind, message::Message};

/// The first bytes of every signed statement. They make a signature for one purpose invalid for any other.
const CONTEXT: &[u8] = b"regatta command 1\0";

/// A framed command with a number and a signature, on `cmd/<run>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedCommand {
    /// The command's number. It grows with every command that this coordinator sends to any device.
    pub number: u64,
    /// The exact bytes of the framed [`crate::message::Command`].
    pub command: Vec<u8>,
    /// The Ed25519 signature over [`Self::statement`], 64 bytes.
    pub signature: Vec<u8>,
}
impl Message for SignedCommand {
    const KIND: FrameKind = FrameKind::SignedCommand;
}

impl SignedCommand {
    /// Returns the bytes that the coordinator signs.
    #[must_use]
    pub fn statement(device: &DeviceId, run: RunId, number: u64, command: &[u8]) -> Vec<u8> {
        let run = run.to_string();
        let mut bytes =
            Vec::with_capacity(CONTEXT.len() + device.as_str().len() + run.len() + 8 + command.len());
        bytes.extend_from_slice(CONTEXT);
        // All device ids have the same length, and so have all run ids: no two statements have the same bytes.
        bytes.extend_from_slice(device.as_str().as_bytes());
        bytes.extend_from_slice(run.as_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(command);
        bytes
    }
}
