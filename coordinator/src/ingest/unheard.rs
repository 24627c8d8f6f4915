//! Hellos and states that the store could not take, as on a full disk. Devices repeat log chunks until they are
//! acknowledged, but a state they say once a connection: it is kept here and tried again with every batch.

use std::collections::BTreeMap;

use bytes::Bytes;
use regatta_wire::topic::{Leaf, Topic};

/// Topics kept at once; what is beyond them is heard again when its device or this coordinator comes back.
const TOPICS: usize = 256;

/// What was said on a topic.
#[derive(Debug, Clone)]
pub(super) struct Said {
    /// The payload.
    pub(super) payload: Bytes,
    /// Whether the broker had kept it.
    pub(super) retained: bool,
}

/// What is to be tried again: of each topic the last word, as the broker keeps it.
#[derive(Debug, Default)]
pub(super) struct Unheard {
    topics: BTreeMap<String, Said>,
}

impl Unheard {
    /// Keeps what nobody says again by himself.
    pub(super) fn keep(&mut self, topic: &str, said: &Said) {
        let said_once =
            Topic::parse(topic).is_ok_and(|topic| matches!(topic.leaf, Leaf::Hello | Leaf::State(_)));
        if said_once && (self.topics.len() < TOPICS || self.topics.contains_key(topic)) {
            self.topics.insert(topic.to_owned(), said.clone());
        }
    }

    /// Keeps a topic's word no longer.
    pub(super) fn forget(&mut self, topic: &str) {
        self.topics.remove(topic);
    }

    /// Takes everything out, to be tried again.
    pub(super) fn take(&mut self) -> BTreeMap<String, Said> {
        std::mem::take(&mut self.topics)
    }
}
