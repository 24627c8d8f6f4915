//! Queues hellos and states that the store failed to take, and retries them with every batch. Devices repeat log chunks until they are
//! acknowledged, but send a state only once per connection.

use std::collections::BTreeMap;

use bytes::Bytes;
use regatta_types::DeviceId;
use regatta_wire::topic::{Leaf, Topic};

use regatta_lab_net::link::Inbound;

/// The maximum number of queued topics. A dropped one arrives again when its device or this coordinator reconnects.
const TOPICS: usize = 256;

#[derive(Debug, Clone)]
pub(super) struct TopicMessage {
    pub(super) payload: Bytes,
    /// Whether the broker sent it as a retained message.
    pub(super) retained: bool,
}

impl From<&Inbound> for TopicMessage {
    fn from(message: &Inbound) -> Self {
        Self {
            payload: message.payload.clone(),
            retained: message.retained,
        }
    }
}

/// The queue. Like a broker's retained messages, it keeps the last message of each topic.
#[derive(Debug, Default)]
pub(super) struct RetryQueue {
    topics: BTreeMap<String, TopicMessage>,
}

impl RetryQueue {
    /// Queues a message if its device sends it only once.
    pub(super) fn keep(&mut self, topic: &str, message: &TopicMessage) {
        let is_sent_once =
            Topic::parse(topic).is_ok_and(|topic| matches!(topic.leaf, Leaf::Hello | Leaf::State(_)));
        if !is_sent_once {
            return;
        }
        if self.topics.len() >= TOPICS && !self.topics.contains_key(topic) {
            self.drop_newest_of_largest_holder();
        }
        self.topics.insert(topic.to_owned(), message.clone());
    }

    /// Drops the newest topic of the device with the most topics, so that one device cannot displace others.
    fn drop_newest_of_largest_holder(&mut self) {
        let device = |topic: &str| Topic::parse(topic).ok().map(|topic| topic.device);
        let mut by_device: BTreeMap<Option<DeviceId>, Vec<&String>> = BTreeMap::new();
        for topic in self.topics.keys() {
            by_device.entry(device(topic)).or_default().push(topic);
        }
        let largest_holder = by_device.into_values().max_by_key(Vec::len);
        // Run ids sort by time, so the last topic is the newest.
        if let Some(newest) = largest_holder.and_then(|topics| topics.last().map(|topic| (*topic).clone())) {
            self.topics.remove(&newest);
        }
    }

    /// Removes a topic.
    pub(super) fn forget(&mut self, topic: &str) {
        self.topics.remove(topic);
    }

    /// Removes and returns all messages for a retry.
    pub(super) fn take(&mut self) -> BTreeMap<String, TopicMessage> {
        std::mem::take(&mut self.topics)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_queue_is_bounded_per_device() {
        let mut retry_queue = RetryQueue::default();
        let message = TopicMessage {
            payload: Bytes::from_static(b"x"),
            retained: false,
        };
        let topic = |device: char, number: usize| {
            let device = device.to_string().repeat(32);
            format!("regatta/v1/{device}/state/01930e7a-6f00-7000-8000-{number:012x}")
        };
        for number in 0..2 * TOPICS {
            retry_queue.keep(&topic('a', number), &message);
        }
        for number in 0..10 {
            retry_queue.keep(&topic('b', number), &message);
        }
        for number in 0..2 * TOPICS {
            retry_queue.keep(&topic('a', number), &message);
        }
        let kept = retry_queue.take();
        assert_eq!(kept.len(), TOPICS);
        assert!((0..10).all(|number| kept.contains_key(&topic('b', number))));
    }
}
