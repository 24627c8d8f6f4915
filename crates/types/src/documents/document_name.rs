//! Names of the documents in a run's directory. LoadGen's logs have theirs in `regatta_mllog`.

/// The resolved run, as it was sent.
pub const SPEC: &str = "spec.json";
/// Which LoadGen and engine ran, and the verdict.
pub const ATTEMPT: &str = "attempt.json";
/// What the device states about the run, with every file's hash.
pub const EVIDENCE: &str = "evidence.json";
/// The device's Ed25519 signature over the exact bytes of the evidence, hexadecimal.
pub const EVIDENCE_SIGNATURE: &str = "evidence.sig";
/// The coordinator's record.
pub const RECORD: &str = "record.json";
/// The device's public key, hexadecimal.
pub const DEVICE_KEY: &str = "device.pub";
