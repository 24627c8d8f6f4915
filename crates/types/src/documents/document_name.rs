//! File names of the documents in the directories of runs and power sessions. The names of LoadGen's logs are in `regatta_mllog`.

/// The resolved run spec, as it was sent.
pub const SPEC: &str = "spec.json";
/// The LoadGen and the engine that ran, and the verdict.
pub const ATTEMPT: &str = "attempt.json";
/// The device's evidence of the run, with every file's hash.
pub const EVIDENCE: &str = "evidence.json";
/// The device's Ed25519 signature over the exact bytes of the evidence, hexadecimal.
pub const EVIDENCE_SIGNATURE: &str = "evidence.sig";
/// The coordinator's record.
pub const RECORD: &str = "record.json";
/// The device's public key, hexadecimal.
pub const DEVICE_KEY: &str = "device.pub";
/// The coordinator's record of a power session, in the session's directory.
pub const POWER_SESSION_RECORD: &str = "session.json";
