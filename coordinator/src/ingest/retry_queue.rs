//! Queues hellos and states that the store could not take, as on a full disk, and retries them with every batch. Devices repeat log
//! chunks until they are acknowledged, but send a state only once per connection.

use std::collections::BTreeMap;

use bytes::Bytes;
use regatta_types::DeviceId;
use regatta_wire::topic::{Leaf, Topic};

/// Topics in the queue at most. The others arrive again when their device or this coordinator reconnects.
const TOPICS: usize = 256;

/// A message on a topic.
#[derive(Debug, Clone)]
pub(super) struct TopicMessage {
    /// The payload.
    pub(super) payload: Bytes,
    /// Whether the broker had retained it.
    pub(super) retained: bool,
}

/// The queue: the last message of each topic, like retained messages of a broker.
#[derive(Debug, Default)]
pub(super) struct RetryQueue {
    topics: BTreeMap<String, TopicMessage>,
}

impl RetryQueue {
    /// Queues a message that its device does not repeat.
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
        // Run ids sort by time.
        if let Some(newest) = largest_holder.and_then(|topics| topics.last().map(|topic| (*topic).clone())) {
            self.topics.remove(&newest);
        }
    }

    /// Removes a topic.
    pub(super) fn forget(&mut self, topic: &str) {
        self.topics.remove(topic);
    }

    /// Takes all messages out, to retry them.
    pub(super) fn take(&mut self) -> BTreeMap<String, TopicMessage> {
        std::mem::take(&mut self.topics)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_devices_many_words_displace_no_other_devices_few() {
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
