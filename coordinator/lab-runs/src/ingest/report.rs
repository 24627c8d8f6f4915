//! Opens what devices report. A foreign broker, or any client of a workspace without TLS, can publish in a device's name, so every message is
//! signed by its device, except chunks and heartbeats.

use regatta_types::DeviceId;
use regatta_wire::{
    FrameKind,
    frame::{self, FrameError},
    signed_report::SignedReport,
    topic::{Leaf, Topic},
};
use ring::signature::{ED25519, UnparsedPublicKey};

/// The reason why a message does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ReportError {
    /// The envelope cannot be decoded.
    #[error("it is not a signed report")]
    Envelope(#[source] FrameError),
    /// The key is another device's.
    #[error("it is signed by device {0}")]
    OtherDevice(DeviceId),
    /// The signature does not match.
    #[error("its signature does not match the device's key")]
    Forged,
}

/// Returns the message in a payload, if the topic's device has signed it or it needs no signature: the signed end of a stream covers its
/// chunks, and the next heartbeat replaces a forged one.
///
/// # Errors
/// Returns [`ReportError`] for every other payload.
pub(super) fn open<'a>(topic: &Topic, payload: &'a [u8]) -> Result<&'a [u8], ReportError> {
    match (&topic.leaf, frame::stated_kind(payload)) {
        (Leaf::Log(..), Some(FrameKind::Chunk)) | (Leaf::Telemetry, Some(FrameKind::Heartbeat)) => {
            return Ok(payload);
        }
        _ => {}
    }
    let report = SignedReport::from_frame(payload).map_err(ReportError::Envelope)?;
    let signer = DeviceId::of_public_key(&report.public_key);
    if signer != topic.device {
        return Err(ReportError::OtherDevice(signer));
    }
    UnparsedPublicKey::new(&ED25519, &report.public_key)
        .verify(&SignedReport::statement(topic, report.message), &report.signature)
        .map_err(|_| ReportError::Forged)?;
    Ok(report.message)
}
