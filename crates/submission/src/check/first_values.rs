//! The first value of each key of a detail log, in the order in which the keys appear.
//!
//! A log has some hundred keys and any number of lines that repeat them in the same order, so the key of the next line is guessed
//! before it is looked up. Keys and line ends lie in one buffer: a log of a few hundred lines costs few allocations.

use std::{hash::BuildHasher as _, ops::Range};

use hashbrown::{DefaultHashBuilder, HashTable};
use regatta_mllog::read::Value;

/// Keys beyond this are not kept: LoadGen writes about two hundred.
const MOST_KEYS: usize = 4096;
/// Keys for which there is room from the beginning.
const USUAL_KEYS: usize = 256;
/// Bytes of keys and line ends for which there is room from the beginning.
const USUAL_BYTES: usize = 16 << 10;
/// Line ends beyond this many bytes are not kept: a log that changes them at every line must not fill the memory.
const MOST_BYTES: usize = 4 << 20;

/// What the keys begin with that LoadGen writes any number of times, with other values.
const REPEATED_KEYS: [&[u8]; 5] = [
    b"generic_message",
    b"logger_",
    b"warning_",
    b"error_",
    b"loaded_qsl_set",
];

/// Where and when a record was written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Origin {
    pub(super) line: Option<u64>,
    /// In milliseconds since the log was begun.
    pub(super) time_ms: Option<f64>,
}

/// The number of a key.
pub(super) type Number = usize;

/// All first values.
#[derive(Debug, Default)]
pub(super) struct FirstValues {
    list: Vec<First>,
    index: HashTable<Number>,
    hasher: DefaultHashBuilder,
    /// Keys and line ends.
    bytes: Vec<u8>,
    /// The key that was met last.
    last: Number,
}

/// A key's first record.
#[derive(Debug)]
struct First {
    key: Range<usize>,
    origin: Origin,
    value: Value,
    /// Whether LoadGen writes the key with other values, too.
    may_change: bool,
    /// How the key's last line ended, from its second one on; empty where that is not known.
    tail: Range<usize>,
    /// The key that followed when this one was met last.
    next: Number,
}

impl FirstValues {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The number of a key that has a value.
    pub(super) fn find(&self, key: &[u8]) -> Option<Number> {
        let hash = self.hasher.hash_one(key);
        self.index.find(hash, |&number| self.key(number) == key).copied()
    }

    /// The key that probably comes next.
    pub(super) fn expected(&self) -> Option<(Number, &[u8])> {
        let number = self.list.get(self.last)?.next;
        let first = self.list.get(number)?;
        Some((number, self.bytes.get(first.key.clone())?))
    }

    /// Notes that a key was met.
    pub(super) fn met(&mut self, number: Number) {
        if let Some(last) = self.list.get_mut(self.last) {
            last.next = number;
        }
        self.last = number;
    }

    /// Adds the first value of a key that has none; nothing when there are too many keys.
    pub(super) fn add(&mut self, key: &[u8], origin: Origin, value: Value) {
        if self.list.len() >= MOST_KEYS {
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

    /// Keeps how a key's line ended.
    pub(super) fn keep_tail(&mut self, number: Number, tail: &[u8]) {
        let known = self.list.get(number).map(|first| first.tail.clone());
        let Some(known) = known else { return };
        let place = known.start..known.start + tail.len();
        let kept = if tail.len() <= known.len() {
            if let Some(capacity) = self.bytes.get_mut(place.clone()) {
                capacity.copy_from_slice(tail);
            }
            place
        } else if self.bytes.len() + tail.len() <= MOST_BYTES {
            self.keep(tail)
        } else {
            0..0
        };
        if let Some(first) = self.list.get_mut(number) {
            first.tail = kept;
        }
    }

    /// How a key's last line ended; empty where that is not known.
    pub(super) fn tail(&self, number: Number) -> &[u8] {
        let tail = self.list.get(number).map(|first| first.tail.clone());
        tail.and_then(|tail| self.bytes.get(tail)).unwrap_or_default()
    }

    /// A key's value, and where it was written.
    pub(super) fn get(&self, key: &str) -> Option<(&Value, Origin)> {
        let first = self.list.get(self.find(key.as_bytes())?)?;
        Some((&first.value, first.origin))
    }

    /// The value that every record of a key has; `None` where LoadGen writes others, too.
    pub(super) fn constant(&self, number: Number) -> Option<&Value> {
        let first = self.list.get(number).filter(|first| !first.may_change)?;
        Some(&first.value)
    }

    fn key(&self, number: Number) -> &[u8] {
        let key = self.list.get(number).map(|first| first.key.clone());
        key.and_then(|key| self.bytes.get(key)).unwrap_or_default()
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }
}
