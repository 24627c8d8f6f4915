//! The publishing side of the event loop: gathers the contents of each announcement from the components and passes it to
//! the link. Announcements come before logs.

use std::time::{Duration, Instant};

use regatta_wire::message::Heartbeat;
use tokio::time::timeout;

use super::Service;
use crate::daemon::{
    announcements::{Announcement, publications},
    delivery::Delivery,
    link::{Link, LinkEvent, Publication},
};

/// Time that a stopping daemon waits until it can publish that it is offline.
const OFFLINE_PATIENCE: Duration = Duration::from_secs(1);

impl<L: Link> Service<L> {
    /// Returns whether there is something to publish.
    pub(super) fn has_publication(&self, now: Instant) -> bool {
        self.announcements.has_next(self.executor.has_active_run())
            || (self.stop_by.is_none() && self.delivery.has_message(self.runs.iter(), now))
    }

    /// Publishes the most urgent item.
    pub(super) fn publish_next(&mut self, now: Instant) {
        let publication = match self.announcements.next(self.executor.has_active_run()) {
            Some(announcement) => self.publication(announcement, now),
            None => self.next_log_message(now),
        };
        if publication.is_some_and(|publication| !self.link.publish(publication)) {
            self.publish_everything_again();
        }
    }

    /// Marks everything for publication again, because earlier publications may be lost.
    pub(super) fn publish_everything_again(&mut self) {
        self.announcements.repeat_all(self.runs.ids_with_state());
        Delivery::restart(self.runs.iter_mut());
    }

    fn publication(&mut self, announcement: Announcement, now: Instant) -> Option<Publication> {
        let device = &self.device;
        match announcement {
            Announcement::Hello => {
                self.queue_inventory(now);
                publications::hello(&self.device, self.runs.known_ids(), true)
            }
            Announcement::Heartbeat(sequence) => {
                let heartbeat = Heartbeat {
                    sequence,
                    uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
                    running: self.executor.measuring(),
                    spooled_bytes: self.runs.backlog(),
                    readings: self.sensors.read(),
                };
                publications::heartbeat(device, &heartbeat)
            }
            Announcement::InventoryPage(page) => publications::inventory_page(device, &page),
            Announcement::ClearedState(run) => Some(publications::cleared_state(device, run)),
            Announcement::State(run) => publications::state(device, &self.runs.report(run)?),
            Announcement::Examination(command) => publications::examination(device, command),
        }
    }

    fn next_log_message(&mut self, now: Instant) -> Option<Publication> {
        let (run, message) = self.delivery.next_message(self.runs.iter_mut(), now)?;
        publications::stream_message(&self.device, run, message)
    }

    fn queue_inventory(&mut self, now: Instant) {
        let (held, newest) = (self.runs.inventory(), self.inbox.newest_command());
        self.announcements.queue_inventory(&held, newest, now);
    }

    /// Publishes the inventory, because the coordinator appears to have an outdated view.
    pub(super) fn answer_with_inventory(&mut self, now: Instant) {
        if !self.executor.has_active_run() && self.announcements.may_answer_with_inventory(now) {
            self.queue_inventory(now);
        }
    }

    /// Publishes that the device goes offline, so that the coordinator does not have to wait for the last will.
    pub(super) async fn publish_offline(&mut self) {
        if self.connected {
            let can_publish = async {
                while !matches!(
                    self.link.next(true).await,
                    LinkEvent::CanPublish | LinkEvent::Closed
                ) {}
            };
            if timeout(OFFLINE_PATIENCE, can_publish).await.is_ok()
                && let Some(hello) = publications::hello(&self.device, self.runs.known_ids(), false)
            {
                self.link.publish(hello);
            }
        }
        self.link.close().await;
    }
}
