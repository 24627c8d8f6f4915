//! The embedded broker's hook on published messages.
//!
//! A log or telemetry goes to [`Intake`]. Any message but a log waits for its device's [`Pace`]. What is routed is retained only where
//! [`Retained`] allows it, and without its MQTT properties: Regatta does not read them, and a stored message could hold 64 KiB of them.

use std::{future::Future, pin::Pin, sync::Arc};

use mqtt5::{
    QoS,
    broker::{BrokerEventHandler, ClientPublishEvent, PublishAction},
    packet::publish::PublishPacket,
};
use regatta_wire::topic::{Leaf, Topic};

use super::{intake::Intake, pace::Pace, retained::Retained, routing::Routing};

/// The checks of every message, in this order.
pub(super) struct Hook {
    pace: Arc<Pace>,
    retained: Retained,
    intake: Intake,
    routing: Arc<Routing>,
}

impl Hook {
    /// Creates a hook that sends logs to `intake`, and other messages through `routing`.
    pub(super) fn new(intake: Intake, pace: Arc<Pace>, routing: Arc<Routing>) -> Self {
        Self {
            pace,
            retained: Retained::default(),
            intake,
            routing,
        }
    }

    async fn take(&self, event: ClientPublishEvent) -> PublishAction {
        // `Rights` has already checked the sender's right to publish, and that the topic is one of Regatta's.
        let Ok(topic) = Topic::parse(&event.topic) else {
            return PublishAction::Handled;
        };
        self.pace.speak(&topic.device, &topic.leaf, &event.payload).await;
        if matches!(topic.leaf, Leaf::Log(..) | Leaf::Telemetry) {
            match event.qos {
                _ if event.retain => {}
                // Another heartbeat follows soon. Without an acknowledgement to wait for, a waiting connection would seem dead.
                QoS::AtMostOnce if topic.leaf == Leaf::Telemetry => self.intake.take_or_drop(event),
                _ => self.intake.take(event).await,
            }
            return PublishAction::Handled;
        }
        let retain = event.retain && self.retained.reserve(&topic, &event.topic, event.payload.len());
        let sender = Arc::clone(&event.client_id);
        let message = without_properties(event, retain);
        self.routing.route(&topic, &message, &sender).await;
        PublishAction::Handled
    }
}

fn without_properties(event: ClientPublishEvent, retain: bool) -> PublishPacket {
    let mut packet = PublishPacket::new(&*event.topic, event.payload, event.qos);
    packet.packet_id = event.packet_id;
    packet.retain = retain;
    packet
}

impl BrokerEventHandler for Hook {
    fn on_client_publish<'a>(
        &'a self,
        event: ClientPublishEvent,
    ) -> Pin<Box<dyn Future<Output = PublishAction> + Send + 'a>> {
        Box::pin(self.take(event))
    }
}
