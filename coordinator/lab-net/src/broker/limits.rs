//! The embedded broker's limits: the library's defaults, except where a fleet of devices needs another value.

use std::{net::SocketAddr, time::Duration};

use mqtt5::broker::{
    BrokerConfig, ResourceLimits, StorageBackendType,
    config::{AuthConfig, StorageConfig},
};
use regatta_wire::frame;

/// The largest packet in bytes: the largest frame, its topic and MQTT's own fields.
const PACKET: usize = frame::HEADER_LEN + frame::MAX_BODY + 1024;
/// The maximum number of messages in transit to one subscriber, besides those in its receive window.
const CHANNEL: usize = 128;
/// The maximum bytes queued for one subscriber, including the library's overhead per message.
///
/// The queue holds states and hellos, because logs bypass it. When it is full, the oldest messages are dropped. Devices repeat hellos,
/// and the dispatcher requests states again.
const QUEUED_BYTES: usize = 16 * 1024 * 1024;
/// The maximum number of messages queued for one subscriber. Most are small: `QUEUED_BYTES` bounds the memory.
const QUEUED_MESSAGES: usize = 65_536;
/// The maximum number of retained messages: a hello per device and a state per run that is not yet forgotten. [`super::retained`] bounds
/// the share of one device. This value allows 64 devices their full share.
const RETAINED: usize = 64 * super::retained::MESSAGES_PER_DEVICE;

/// Returns the broker's configuration. The broker stores nothing on disk: devices repeat missing messages.
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
        // `rights` decides per connection.
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

/// Returns the library's own resource limits, all disabled.
///
/// The acceptor bounds connections per device and per address. There is no message rate: a log may arrive as fast as it is committed, and
/// a rejected message would only be sent again. [`super::pace`] delays all other messages.
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
