//! Routes messages between the coordinator and devices at a cost that does not grow with the fleet.
//!
//! The library compares each message with every filter of its router that has a wildcard, and each device has two. Devices that have proven
//! their key therefore subscribe in a separate router, in which only last wills are published. A message to a device goes to its
//! session by its name. Clients without a certificate may be anything, so they share the coordinator's router, at the library's cost.

use std::sync::Arc;

use mqtt5::{
    QoS,
    broker::{
        BrokerConfig, DynamicStorage,
        router::{DeliveryLanes, LaneReceivers, MessageRouter, SubscriptionRequest},
        storage::{QueueLimits, QueuedMessage},
    },
    packet::publish::PublishPacket,
};
use regatta_wire::topic::{Leaf, ROOT, Topic, agent_client_id};
use tokio::sync::oneshot;

use super::rights::Peer;

/// The client of the devices' router that takes their last wills. No device has this name.
const WILLS: &str = "regatta-last-wills";
/// The maximum number of last wills in transit: more than the broker has connections, because the library loses the others.
const WILLS_IN_TRANSIT: usize = 16_384;

/// The routers of a broker.
pub(super) struct Routing {
    /// The subscriptions of the coordinator and of unproven clients, and all retained messages.
    coordinator: Arc<MessageRouter>,
    /// The subscriptions of proven devices.
    devices: Arc<MessageRouter>,
}

impl Routing {
    /// Creates routers with the same storage, and with the broker's limits of retained messages.
    pub(super) fn new(storage: &Arc<DynamicStorage>, queues: QueueLimits, config: &BrokerConfig) -> Self {
        let router = || {
            let router = MessageRouter::with_storage(Arc::clone(storage)).with_fallback_queue_limits(queues);
            Arc::new(
                router.with_retained_limits(config.max_retained_messages, config.max_retained_message_size),
            )
        };
        Self {
            coordinator: router(),
            devices: router(),
        }
    }

    /// Returns the router of a peer's connection.
    pub(super) fn router_of(&self, peer: &Peer) -> Arc<MessageRouter> {
        Arc::clone(match peer {
            Peer::Device(_) => &self.devices,
            Peer::Unproven | Peer::Coordinator => &self.coordinator,
        })
    }

    /// Routes a message of a client, and retains it where it says so.
    pub(super) async fn route(&self, topic: &Topic, message: &PublishPacket, sender: &str) {
        self.coordinator.route_message(message, Some(sender)).await;
        if matches!(topic.leaf, Leaf::Command(_) | Leaf::Ack(_)) {
            self.deliver(topic, message).await;
        }
    }

    /// Queues a message for its device, if that is connected and subscribed to it.
    async fn deliver(&self, topic: &Topic, message: &PublishPacket) {
        let client = agent_client_id(&topic.device);
        let queue = self.devices.queue_handle(&client);
        // The device's next session begins with another epoch and takes no message of this one.
        let epoch = queue.epoch();
        let filters = Topic::device_subscriptions(&topic.device);
        let [commands, acknowledgements] = &filters;
        let filter = match topic.leaf {
            Leaf::Command(_) => commands,
            _ => acknowledgements,
        };
        if !self.devices.has_subscription(&client, filter).await {
            return;
        }
        let mut message = message.clone();
        message.packet_id = None;
        message.retain = false;
        let qos = message.qos;
        if queue
            .push_in_epoch(QueuedMessage::new(message, client, qos, None), epoch)
            .is_some()
        {
            queue.notify();
        }
    }

    /// Passes last wills of devices to the coordinator's router, without end. The library publishes a will in the router of its
    /// connection.
    pub(super) async fn forward_wills(&self) {
        let (lanes, mut wills) = DeliveryLanes::channel(WILLS_IN_TRANSIT);
        let Some(_displaced) = self.subscribe_to_wills(lanes).await else {
            return;
        };
        self.forward(&mut wills).await;
    }

    /// Returns the guard that keeps the subscription.
    async fn subscribe_to_wills(&self, lanes: DeliveryLanes) -> Option<impl Sized + use<>> {
        let (displace, displaced) = oneshot::channel();
        let queue = self.devices.queue_handle(WILLS);
        self.devices
            .register_client(WILLS.to_owned(), lanes, queue, displace)
            .await;
        let filter = format!("{ROOT}/+/hello");
        let request =
            SubscriptionRequest::new(WILLS, filter, QoS::AtLeastOnce).with_retain_as_published(true);
        match self.devices.subscribe(request).await {
            Ok(_) => Some(displaced),
            Err(error) => {
                tracing::error!("the broker does not pass on that devices are lost: {error}");
                None
            }
        }
    }

    async fn forward(&self, wills: &mut LaneReceivers) {
        while let Some(will) = wills.recv().await {
            self.coordinator.route_message(&will.publish, None).await;
        }
    }
}
