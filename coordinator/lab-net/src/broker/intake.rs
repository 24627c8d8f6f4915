//! Sends logs and telemetry from the embedded broker's hook directly to the ingest's inbox, with a bound on the bytes in transit.
//!
//! The library awaits the hook before it acknowledges a PUBLISH and before it reads more from the connection. A slow ingest therefore
//! slows the device through TCP, and the memory in use is bounded for any number of devices.
//!
//! All other messages go through the broker's routing. With another broker, these do too, and the receive windows of the link and the
//! devices are the bound.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use mqtt5::broker::ClientPublishEvent;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::timeout,
};

use crate::link::Inbound;

/// The maximum bytes between the broker and the end of their batch.
const CAPACITY_BYTES: usize = 16 << 20;
/// The bytes of one unit of capacity. Every message takes one at least.
const UNIT: usize = 1 << 10;
/// The maximum number of messages between the broker and the end of their batch: several thousand devices may send a small one at once.
pub const INBOX_CAPACITY: usize = CAPACITY_BYTES / UNIT;
/// The units that heartbeats leave for logs.
const KEPT_FOR_LOGS: usize = INBOX_CAPACITY / 2;
/// The longest wait for capacity. A waiting connection answers no pings, and a device considers it dead after 15 s.
const PATIENCE: Duration = Duration::from_secs(4);

/// The path of logs and telemetry from the broker to the ingest.
pub(super) struct Intake {
    inbox: mpsc::Sender<Inbound>,
    capacity: Arc<Semaphore>,
    patience: Duration,
    dropped: AtomicU64,
}

impl Intake {
    /// Creates an intake that fills `inbox`.
    pub(super) fn new(inbox: mpsc::Sender<Inbound>) -> Self {
        Self {
            inbox,
            capacity: Arc::new(Semaphore::new(INBOX_CAPACITY)),
            patience: PATIENCE,
            dropped: AtomicU64::new(0),
        }
    }

    /// Sends a message to the ingest once there is capacity. Drops it after the longest wait.
    pub(super) async fn take(&self, event: ClientPublishEvent) {
        let Ok(capacity) = timeout(self.patience, self.capacity(event.payload.len())).await else {
            // The device sends an unacknowledged chunk again after a pause, and another heartbeat.
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            if dropped.is_power_of_two() {
                tracing::warn!(count = dropped, "messages dropped because the ingest is behind");
            }
            return;
        };
        if let Some((place, permit)) = capacity {
            place.send(Inbound::of_hook(&event.topic, event.payload, permit));
        }
    }

    /// Sends a message to the ingest if there is ample capacity now.
    pub(super) fn take_or_drop(&self, event: ClientPublishEvent) {
        if self.capacity.available_permits() <= KEPT_FOR_LOGS {
            return;
        }
        let permit = Arc::clone(&self.capacity).try_acquire_many_owned(units(event.payload.len()));
        if let (Ok(permit), Ok(place)) = (permit, self.inbox.try_reserve()) {
            place.send(Inbound::of_hook(&event.topic, event.payload, permit));
        }
    }

    /// Waits for the capacity for one message of this length. `None` when the coordinator is shutting down.
    async fn capacity(&self, bytes: usize) -> Option<(mpsc::Permit<'_, Inbound>, OwnedSemaphorePermit)> {
        let capacity = Arc::clone(&self.capacity);
        let permit = capacity.acquire_many_owned(units(bytes)).await.ok()?;
        let place = self.inbox.reserve().await.ok()?;
        Some((place, permit))
    }
}

/// Returns the units that a message takes.
fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT).clamp(1, INBOX_CAPACITY)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use mqtt5::QoS;

    use super::*;

    fn event(topic: &str) -> ClientPublishEvent {
        event_of(topic, 64)
    }

    fn event_of(topic: &str, bytes: usize) -> ClientPublishEvent {
        ClientPublishEvent {
            client_id: "a device".into(),
            user_id: None,
            topic: topic.into(),
            payload: vec![0; bytes].into(),
            qos: QoS::AtLeastOnce,
            retain: false,
            packet_id: Some(1),
            response_topic: None,
            correlation_data: None,
        }
    }

    const LOG: &str = "regatta/v1/D/log/R/S";

    async fn full(patience: Duration) -> (Intake, mpsc::Receiver<Inbound>) {
        let (inbox, inbound) = mpsc::channel(2 * INBOX_CAPACITY);
        let intake = Intake {
            patience,
            ..Intake::new(inbox)
        };
        for _ in 0..INBOX_CAPACITY {
            intake.take(event(LOG)).await;
        }
        (intake, inbound)
    }

    #[tokio::test]
    async fn a_full_ingest_holds_the_sender_back_until_it_has_capacity() {
        let (intake, mut inbound) = full(Duration::from_secs(3600)).await;
        let waiting = intake.take(event(LOG));
        tokio::pin!(waiting);
        let a_moment = Duration::from_millis(20);
        assert!(timeout(a_moment, &mut waiting).await.is_err(), "it waits");
        inbound.recv().await.unwrap().dealt_with();
        waiting.await;
        assert_eq!(inbound.len(), INBOX_CAPACITY, "no more than there is room for");
    }

    #[tokio::test]
    async fn unacknowledged_messages_are_dropped_while_the_ingest_is_full() {
        let (intake, mut inbound) = full(Duration::from_secs(3600)).await;
        let mut drain = async |count| {
            for _ in 0..count {
                inbound.recv().await.unwrap().dealt_with();
            }
            intake.take_or_drop(event(LOG));
            inbound.len()
        };
        assert_eq!(drain(0).await, INBOX_CAPACITY);
        let half = INBOX_CAPACITY / 2;
        assert_eq!(drain(half).await, half, "the rest is for logs");
        assert_eq!(drain(1).await, half, "there is room again");
    }

    #[tokio::test]
    async fn large_messages_take_capacity_by_their_length() {
        let (inbox, mut inbound) = mpsc::channel(INBOX_CAPACITY);
        let intake = Intake {
            patience: Duration::from_millis(1),
            ..Intake::new(inbox)
        };
        let chunk = 64 << 10;
        for _ in 0..CAPACITY_BYTES / chunk + 1 {
            intake.take(event_of(LOG, chunk)).await;
        }
        let dropped = || intake.dropped.load(Ordering::Relaxed);
        assert_eq!((inbound.len(), dropped()), (CAPACITY_BYTES / chunk, 1));
        inbound.recv().await.unwrap().dealt_with();
        intake.take(event_of(LOG, chunk)).await;
        assert_eq!(dropped(), 1);
    }

    #[tokio::test]
    async fn waiting_for_the_ingest_is_bounded() {
        let (intake, inbound) = full(Duration::from_millis(1)).await;
        intake.take(event(LOG)).await;
        assert_eq!(
            (inbound.len(), intake.dropped.load(Ordering::Relaxed)),
            (INBOX_CAPACITY, 1)
        );
    }

    #[tokio::test]
    async fn a_coordinator_that_is_ending_takes_nothing_and_holds_up_nobody() {
        let (intake, inbound) = full(Duration::from_secs(3600)).await;
        drop(inbound);
        // Dropping the inbox dropped its messages and released their permits.
        intake.take(event(LOG)).await;
        assert_eq!(intake.capacity.available_permits(), INBOX_CAPACITY);
    }
}
