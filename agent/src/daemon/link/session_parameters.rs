//! Parameters of the device's MQTT session, declared once for options, connection and event loop.

/// Publications that wait between daemon and client.
pub(super) const QUEUE: usize = 8;
/// QoS 1 publications that the broker has not acknowledged.
pub(super) const IN_FLIGHT: u16 = 48;
/// A dead connection is noticed by the broker after one and a half of these, here after two.
pub(super) const KEEP_ALIVE_S: u16 = 10;
/// How long the broker keeps the session of a device that is away.
pub(super) const SESSION_EXPIRY_S: u32 = 7 * 24 * 3600;
