//! Counts rejected messages by kind. A kind is logged when it first occurs and whenever its count has doubled, so that a hostile or
//! broken sender cannot fill the log.

use std::collections::BTreeMap;

use crate::fleet::printable;

/// Why a message is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RejectKind {
    /// Not one of our topics.
    Topic,
    /// The frame cannot be read.
    Frame,
    /// An agent of another wire version.
    Version,
    /// A hello whose id is not its key's fingerprint, or of another device than its topic.
    Identity,
    /// A device that is not enrolled, or was removed.
    NotAdmitted,
    /// A device whose identity two agents use.
    Duplicated,
    /// A run that this coordinator has not sent to that device.
    UnknownRun,
    /// A stream that contradicts itself.
    Stream,
    /// More streams than a run can have.
    TooManyStreams,
    /// A new stream of a run that is recorded.
    Recorded,
    /// A run with more bytes than one may have.
    TooLarge,
    /// The workspace's disk is nearly full.
    DiskFull,
    /// The disk or the store refused; the device sends it again, or it is tried again here.
    Storage,
}

impl RejectKind {
    const fn words(self) -> &'static str {
        match self {
            Self::Topic => "message on a topic that is not ours",
            Self::Frame => "unreadable message",
            Self::Version => "an agent that is older or newer than this coordinator was refused",
            Self::Identity => "a device with another's identity",
            Self::NotAdmitted => "message of a device that is not let in",
            Self::Duplicated => "message of a device whose identity two agents use",
            Self::UnknownRun => "message about a run that was not sent to that device",
            Self::Stream => "stream that contradicts itself",
            Self::TooManyStreams => "run with too many streams",
            Self::Recorded => "new stream of a run that has been recorded",
            Self::TooLarge => "run that is too large",
            Self::DiskFull => "logs are not taken",
            Self::Storage => "cannot store what arrives",
        }
    }
}

/// Rejected messages by kind.
#[derive(Debug, Default)]
pub(super) struct RejectCounters {
    counts: BTreeMap<RejectKind, u64>,
}

impl RejectCounters {
    /// Counts one and logs it if it is the first, second, fourth ... of its kind.
    pub(super) fn add(&mut self, kind: RejectKind, topic: &str, detail: &dyn std::fmt::Display) {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        if count.is_power_of_two() {
            let topic = printable(topic, 120);
            let detail = printable(&detail.to_string(), 300);
            tracing::warn!(count, topic, "{}: {detail}", kind.words());
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self, kind: RejectKind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }
}
