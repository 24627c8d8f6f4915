//! Stores the first value of each key of a detail log, in the order in which the keys appear.
//!
//! A log has a few hundred keys, and its other lines repeat them in the same order. The next key is therefore predicted before it
//! is looked up. Keys and line ends share one buffer, so a log of a few hundred lines needs few allocations.

use std::{hash::BuildHasher as _, ops::Range};

use hashbrown::{DefaultHashBuilder, HashTable};
use regatta_mllog::read::Value;

/// The largest number of keys that are kept. LoadGen writes about two hundred.
const MAX_KEYS: usize = 4096;
/// The number of keys for which memory is reserved at the start.
const USUAL_KEYS: usize = 256;
/// The number of bytes of keys and line ends that are reserved at the start.
const USUAL_BYTES: usize = 16 << 10;
/// The limit for kept line ends, in bytes. It bounds the memory for a log in which every line end differs.
const MAX_BYTES: usize = 4 << 20;

/// Prefixes of the keys that LoadGen writes repeatedly with different values.
const REPEATED_KEYS: [&[u8]; 5] = [
    b"generic_message",
    b"logger_",
    b"warning_",
    b"error_",
    b"loaded_qsl_set",
];

/// The line and the time of a record.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Origin {
    pub(super) line: Option<u64>,
    /// The time in milliseconds since the start of the log.
    pub(super) time_ms: Option<f64>,
}

/// The index of a key.
pub(super) type KeyIndex = usize;

/// The first values of all keys.
#[derive(Debug, Default)]
pub(super) struct FirstValues {
    list: Vec<First>,
    index: HashTable<KeyIndex>,
    hasher: DefaultHashBuilder,
    /// The bytes of keys and line ends.
    bytes: Vec<u8>,
    /// The key of the last record.
    last: KeyIndex,
}

/// The first record of a key.
#[derive(Debug)]
struct First {
    key: Range<usize>,
    origin: Origin,
    value: Value,
    /// Whether LoadGen also writes the key with other values.
    may_change: bool,
    /// The end of the key's last line, from its second line on; empty if unknown.
    tail: Range<usize>,
    /// The key that followed the last record of this one.
    next: KeyIndex,
}

impl FirstValues {
    /// Returns whether there are no values.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the index of a key that has a value.
    pub(super) fn find(&self, key: &[u8]) -> Option<KeyIndex> {
        let hash = self.hasher.hash_one(key);
        self.index.find(hash, |&number| self.key(number) == key).copied()
    }

    /// Returns the predicted next key.
    pub(super) fn expected(&self) -> Option<(KeyIndex, &[u8])> {
        let number = self.list.get(self.last)?.next;
        let first = self.list.get(number)?;
        Some((number, self.bytes.get(first.key.clone())?))
    }

    /// Records that a key occurred, for the prediction.
    pub(super) fn met(&mut self, number: KeyIndex) {
        if let Some(last) = self.list.get_mut(self.last) {
            last.next = number;
        }
        self.last = number;
    }

    /// Adds the first value of a new key. Does nothing if there are too many keys.
    pub(super) fn add(&mut self, key: &[u8], origin: Origin, value: Value) {
        if self.list.len() >= MAX_KEYS {
            return;
        }
        if self.list.is_empty() {
            self.list.reserve(USUAL_KEYS);
            self.bytes.reserve(USUAL_BYTES);
            self.index.reserve(USUAL_KEYS, |_| 0);
        }
        let number = self.list.len();
        let may_change = REPEATED_KEYS.iter().any(|start| key.starts_with(start));
        let key = self.keep(key);
        let hash = self
            .hasher
            .hash_one(self.bytes.get(key.clone()).unwrap_or_default());
        self.list.push(First {
            key,
            origin,
            value,
            may_change,
            tail: 0..0,
            next: number + 1,
        });
        let Self {
            list,
            index,
            hasher,
            bytes,
            ..
        } = self;
        index.insert_unique(hash, number, |&number| {
            let key = list.get(number).and_then(|first| bytes.get(first.key.clone()));
            hasher.hash_one(key.unwrap_or_default())
        });
        self.met(number);
    }

    /// Stores the end of a key's line.
    pub(super) fn keep_tail(&mut self, number: KeyIndex, tail: &[u8]) {
        let known = self.list.get(number).map(|first| first.tail.clone());
        let Some(known) = known else { return };
        let place = known.start..known.start + tail.len();
        let kept = if tail.len() <= known.len() {
            if let Some(capacity) = self.bytes.get_mut(place.clone()) {
                capacity.copy_from_slice(tail);
            }
            place
        } else if self.bytes.len() + tail.len() <= MAX_BYTES {
            self.keep(tail)
        } else {
            0..0
        };
        if let Some(first) = self.list.get_mut(number) {
            first.tail = kept;
        }
    }

    /// Returns the end of a key's last line; empty if unknown.
    pub(super) fn tail(&self, number: KeyIndex) -> &[u8] {
        let tail = self.list.get(number).map(|first| first.tail.clone());
        tail.and_then(|tail| self.bytes.get(tail)).unwrap_or_default()
    }

    /// Returns a key's value and its origin.
    pub(super) fn get(&self, key: &str) -> Option<(&Value, Origin)> {
        let first = self.list.get(self.find(key.as_bytes())?)?;
        Some((&first.value, first.origin))
    }

    /// Returns the value that all records of a key must have, or `None` if LoadGen writes it with different values.
    pub(super) fn constant(&self, number: KeyIndex) -> Option<&Value> {
        let first = self.list.get(number).filter(|first| !first.may_change)?;
        Some(&first.value)
    }

    fn key(&self, number: KeyIndex) -> &[u8] {
        let key = self.list.get(number).map(|first| first.key.clone());
        key.and_then(|key| self.bytes.get(key)).unwrap_or_default()
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }
}
