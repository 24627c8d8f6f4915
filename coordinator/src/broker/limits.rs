//! What the embedded broker allows: its library's defaults, changed where a fleet of devices needs another value.

use std::{net::SocketAddr, time::Duration};

use mqtt5::broker::{
    BrokerConfig, ResourceLimits, StorageBackendType,
    config::{AuthConfig, StorageConfig},
};
use regatta_wire::frame;

/// Largest packet: the largest frame, its topic and MQTT's own fields.
const PACKET: usize = frame::HEADER_LEN + frame::MAX_BODY + 1024;
/// Messages on their way to one subscriber beside those in its window.
const CHANNEL: usize = 128;
/// Bytes that may wait for one subscriber, with the library's own for each message: states and hellos, as logs take a way of their
/// own. The oldest are dropped beyond that; devices repeat hellos, and the dispatcher asks again for states.
const QUEUED_BYTES: usize = 16 * 1024 * 1024;
/// Messages that may wait for one subscriber. Most are small: the bytes bound the memory.
const QUEUED_MESSAGES: usize = 65_536;
/// Retained messages: a hello per device and a state per run that is not yet forgotten. What one device may leave is bounded
/// by [`super::retained`]: this is for 64 devices that all leave as much as they may.
const RETAINED: usize = 64 * super::retained::MESSAGES_PER_DEVICE;

/// The broker's configuration. It keeps nothing on disk: devices repeat what is missing.
pub(super) fn broker(listen: SocketAddr) -> BrokerConfig {
    BrokerConfig {
        bind_addresses: vec![listen],
        session_expiry_interval: Duration::ZERO,
        max_packet_size: PACKET,
        maximum_qos: 1,
        topic_alias_maximum: 0,
        shared_subscription_available: false,
        max_subscriptions_per_client: 64,
        max_retained_messages: RETAINED,
        max_retained_message_size: PACKET,
        client_channel_capacity: CHANNEL,
        max_outbound_inflight: crate::link::WINDOW,
        sys_topics_enabled: false,
        // Who may do what is decided per connection, by `rights`.
        auth_config: AuthConfig::default(),
        storage_config: StorageConfig {
            backend: StorageBackendType::Memory,
            enable_persistence: false,
            max_queued_messages_per_client: QUEUED_MESSAGES,
            max_queued_bytes_per_client: QUEUED_BYTES,
            ..StorageConfig::default()
        },
        ..BrokerConfig::default()
    }
}

/// The library's own limits, all off: connections are bounded by the acceptor, for each device and address. No message rate:
/// a log may come as fast as it can be committed, and a broker that rejects a message by rate only makes the device send it
/// again. What is no log waits in [`super::pace`].
pub(super) fn resources() -> ResourceLimits {
    ResourceLimits {
        max_connections: usize::MAX,
        max_connections_per_ip: usize::MAX,
        max_message_rate_per_client: 0,
        max_bandwidth_per_client: 0,
        max_connection_rate: u32::MAX,
        rate_limit_window: Duration::from_secs(1),
    }
}
