//! Commands with the coordinator's signature: what lets a device trust a command whatever broker carried it.
//!
//! The signature is over the device, the run, a number that only grows, and the exact bytes of the command's own frame.
//! A command can therefore be neither forged nor changed, nor sent to another device or run, nor played again. Who holds
//! the keys, and how numbers are kept, is the daemons' affair.

use regatta_rules::{DeviceId, RunId};
use serde::{Deserialize, Serialize};

use crate::message::Message;

/// Begins every statement, so that a signature made for one purpose fits no other.
const CONTEXT: &[u8] = b"regatta command 1\0";

/// A command in its own frame, numbered and signed (on `cmd/<run>`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedCommand {
    /// Grows with every command to any device of this coordinator.
    pub number: u64,
    /// The framed [`crate::message::Command`], byte for byte.
    pub command: Vec<u8>,
    /// Ed25519 over [`Self::statement`]; 64 bytes.
    pub signature: Vec<u8>,
}
impl Message for SignedCommand {
    const KIND: u8 = 8;
}

impl SignedCommand {
    /// The bytes that are signed.
    #[must_use]
    pub fn statement(device: &DeviceId, run: RunId, number: u64, command: &[u8]) -> Vec<u8> {
        let run = run.to_string();
        let mut bytes =
            Vec::with_capacity(CONTEXT.len() + device.as_str().len() + run.len() + 8 + command.len());
        bytes.extend_from_slice(CONTEXT);
        // Device ids and run ids have one length each, so that no two statements share their bytes.
        bytes.extend_from_slice(device.as_str().as_bytes());
        bytes.extend_from_slice(run.as_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(command);
        bytes
    }
}
