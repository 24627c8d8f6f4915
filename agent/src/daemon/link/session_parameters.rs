//! Parameters of the device's MQTT session.

/// Capacity of the queue of publications between daemon and client.
pub(super) const QUEUE: usize = 8;
/// Largest number of unacknowledged QoS 1 publications.
pub(super) const IN_FLIGHT: u16 = 48;
/// Keep-alive interval in seconds. The broker detects a dead connection after 1.5 intervals, the device after 2.
pub(super) const KEEP_ALIVE_S: u16 = 10;
/// Time in seconds for which the broker keeps the session of an offline device.
pub(super) const SESSION_EXPIRY_S: u32 = 7 * 24 * 3600;
