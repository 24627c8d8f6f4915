//! Counts rejected messages by kind. A kind is logged on its first occurrence and each time its count doubles. A hostile or faulty sender
//! therefore cannot fill the log.

use std::collections::BTreeMap;

use regatta_text::escape_start;

/// The reason for rejecting a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RejectKind {
    /// The topic is not one of Regatta's.
    Topic,
    /// The frame cannot be decoded.
    Frame,
    /// The agent uses another wire version.
    Version,
    /// The hello's id is not its key's fingerprint, or is not the device of the topic.
    Identity,
    /// The device is not enrolled or was removed.
    NotAdmitted,
    /// The device of the topic did not sign the message.
    Unsigned,
    /// Two agents use the device's identity.
    Duplicated,
    /// A newer message of its kind has arrived before.
    Outdated,
    /// The coordinator did not send this run to this device.
    UnknownRun,
    /// The stream contradicts its earlier content.
    Stream,
    /// The device does not list the stream among the run's files.
    Unlisted,
    /// The run exceeds its maximum number of streams.
    TooManyStreams,
    /// The stream is new and its run is already recorded.
    Recorded,
    /// The run exceeds its maximum size.
    TooLarge,
    /// The workspace's disk is nearly full.
    DiskFull,
    /// The disk or the store failed. The device repeats the message, or the ingest retries it.
    Storage,
}

impl RejectKind {
    const fn words(self) -> &'static str {
        match self {
            Self::Topic => "message on a topic that is not ours",
            Self::Frame => "unreadable message",
            Self::Version => "an agent that is older or newer than this coordinator was refused",
            Self::Identity => "a device with another's identity",
            Self::NotAdmitted => "message of a device that is not enrolled",
            Self::Unsigned => "message that its device did not sign",
            Self::Outdated => "message that is older than one that has arrived",
            Self::Unlisted => "stream that its device does not list",
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
    /// Counts a rejected message, and logs it when the count of its kind is a power of two.
    pub(super) fn add(&mut self, kind: RejectKind, topic: &str, detail: &dyn std::fmt::Display) {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        if count.is_power_of_two() {
            let topic = escape_start(topic, 120);
            let detail = escape_start(&detail.to_string(), 300);
            tracing::warn!(count, topic, "{}: {detail}", kind.words());
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self, kind: RejectKind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }
}
