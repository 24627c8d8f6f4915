//! A property of the delivery on a device that loses power between any two steps: whatever the disk kept of the journal beyond its last
//! flush, every byte arrives, and nothing counts as delivered that the coordinator does not have.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write as _,
    time::Duration,
};

use proptest::prelude::*;
use regatta_wire::{
    chunk::{LogMessage, MAX_DATA},
    message::StreamVerdict,
};
use sha2::{Digest as _, Sha256};

use super::*;
use crate::daemon::runs::job::Job;

const WINDOW: u32 = 4;
/// The rounds without faults after which everything must have arrived.
const MAX_DRAIN: usize = 200;

#[derive(Debug, Clone)]
enum Step {
    /// The bytes so far may be sent before they are sealed.
    Grow,
    Seal,
    /// Messages go to the coordinator, and acknowledgements come back. Some are lost.
    Exchange {
        messages: usize,
        lost: Vec<bool>,
    },
    /// The coordinator loses a stream and requests it again.
    Resend {
        stream: usize,
    },
    /// The power fails. Of the journal's unflushed bytes so many percent remain, followed by garbage.
    PowerCut {
        percent: u64,
        garbage: Vec<u8>,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => Just(Step::Grow),
        2 => Just(Step::Seal),
        5 => (1..6_usize, prop::collection::vec(prop::bool::weighted(0.2), 12))
            .prop_map(|(messages, lost)| Step::Exchange { messages, lost }),
        1 => (0..2_usize).prop_map(|stream| Step::Resend { stream }),
        3 => (0..=100_u64, prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(percent, garbage)| Step::PowerCut { percent, garbage }),
    ];
    prop::collection::vec(step, 1..40)
}

/// The coordinator's part of one stream. It loses nothing by itself.
#[derive(Debug, Default)]
struct Receiver {
    bytes: Vec<u8>,
    is_whole: bool,
    /// Whether the coordinator lost it and requests it until it is here again.
    is_requested: bool,
}

struct Lab {
    _directory: tempfile::TempDir,
    dir: RunDir,
    contents: BTreeMap<StreamName, Vec<u8>>,
    receivers: BTreeMap<StreamName, Receiver>,
    delivery: RunDelivery,
    /// The length of the journal at its last flush.
    flushed: u64,
    now: Instant,
}

impl Lab {
    fn new(lengths: [usize; 2]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let run = RunId::now();
        let dir = RunDir::create(directory.path(), run, b"{}", &Job::queued(0)).unwrap();
        let contents: BTreeMap<StreamName, Vec<u8>> = [("log", lengths[0]), ("run.log", lengths[1])]
            .map(|(name, length)| {
                (
                    name.parse().unwrap(),
                    (0..length).map(|at| (at % 251) as u8).collect(),
                )
            })
            .into();
        for (name, content) in &contents {
            fs::write(dir.files().join(name.as_str()), content).unwrap();
        }
        let receivers = contents
            .keys()
            .map(|name| (name.clone(), Receiver::default()))
            .collect();
        Self {
            delivery: RunDelivery::open(run, dir.clone(), WINDOW),
            _directory: directory,
            dir,
            contents,
            receivers,
            flushed: 0,
            now: Instant::now(),
        }
    }

    fn perform(&mut self, step: &Step) {
        match step {
            Step::Grow => {
                let lengths = self
                    .contents
                    .iter()
                    .map(|(name, content)| (name.clone(), content.len() as u64));
                self.delivery.grow(&lengths.collect::<Vec<_>>());
            }
            Step::Seal => self.seal(),
            Step::Exchange { messages, lost } => {
                let mut lost = lost.iter().copied().cycle();
                for _ in 0..*messages {
                    self.exchange(lost.next().unwrap_or(false), lost.next().unwrap_or(false));
                }
            }
            Step::Resend { stream } => {
                let name = self.contents.keys().nth(*stream).unwrap().clone();
                let lost = Receiver {
                    is_requested: true,
                    ..Receiver::default()
                };
                self.receivers.insert(name.clone(), lost);
                self.delivery.resend(&[name]);
            }
            Step::PowerCut { percent, garbage } => self.cut_power(*percent, garbage),
        }
    }

    fn seal(&mut self) {
        let streams = self.contents.iter().map(|(name, content)| SealedStream {
            name: name.clone(),
            length: content.len() as u64,
            sha256: Sha256::digest(content).into(),
        });
        self.delivery.seal(streams.collect(), true);
        self.flushed = self.journal_length();
    }

    /// Sends one message, and returns whether there was one.
    fn exchange(&mut self, message_is_lost: bool, ack_is_lost: bool) -> bool {
        let Some(message) = self.delivery.next_message(self.now) else {
            return false;
        };
        if message_is_lost {
            return true;
        }
        let ack = self.receive(&message);
        if !ack_is_lost {
            self.delivery.acknowledge(&ack, self.now);
        }
        true
    }

    fn receive(&mut self, message: &StreamMessage) -> Ack {
        let receiver = self.receivers.get_mut(&message.stream).unwrap();
        let mut verdict = None;
        match LogMessage::from_frame(&message.payload).unwrap() {
            LogMessage::Chunk(chunk) => {
                let from = usize::try_from(chunk.offset).unwrap();
                if from <= receiver.bytes.len() && !receiver.is_whole {
                    let known = receiver.bytes.len() - from;
                    receiver
                        .bytes
                        .extend_from_slice(chunk.data.get(known..).unwrap_or_default());
                }
            }
            LogMessage::End(end) if receiver.bytes.len() as u64 == end.length => {
                receiver.is_whole = <[u8; 32]>::from(Sha256::digest(&receiver.bytes)) == end.sha256;
                assert!(receiver.is_whole, "{} is not the device's", message.stream);
            }
            LogMessage::End(_) => {}
        }
        if receiver.is_whole {
            receiver.is_requested = false;
            verdict = Some(StreamVerdict::Equal);
        }
        Ack {
            stream: message.stream.clone(),
            committed: receiver.bytes.len() as u64,
            verdict,
        }
    }

    fn cut_power(&mut self, percent: u64, garbage: &[u8]) {
        let kept = self.flushed + (self.journal_length() - self.flushed) * percent / 100;
        let mut journal = OpenOptions::new()
            .append(true)
            .open(self.dir.journal_path())
            .unwrap();
        journal.set_len(kept).unwrap();
        journal.write_all(garbage).unwrap();
        self.delivery = RunDelivery::open(self.delivery.run, self.dir.clone(), WINDOW);
        // What opening left is what the disk has, as after a power cut in the moment after it.
        self.flushed = self.flushed.min(self.journal_length());
    }

    fn journal_length(&self) -> u64 {
        fs::metadata(self.dir.journal_path()).unwrap().len()
    }

    fn check(&self) {
        if !(self.delivery.is_complete() && self.delivery.is_delivered()) {
            return;
        }
        for (name, receiver) in self
            .receivers
            .iter()
            .filter(|(_, receiver)| !receiver.is_requested)
        {
            assert!(receiver.is_whole, "{name} counts as delivered");
            assert_eq!(receiver.bytes, self.contents[name]);
        }
    }

    /// Lets everything arrive.
    fn drain(&mut self) {
        for _ in 0..MAX_DRAIN {
            if !self.delivery.is_complete() {
                self.seal();
            }
            while self.exchange(false, false) {}
            self.now += Duration::from_secs(30);
            self.delivery.handle_deadline(self.now);
            let lacking = self.receivers.iter().filter(|(_, receiver)| !receiver.is_whole);
            let lacking: Vec<StreamName> = lacking.map(|(name, _)| name.clone()).collect();
            self.delivery.resend(&lacking);
            if lacking.is_empty() && self.delivery.is_delivered() {
                break;
            }
        }
        assert!(self.delivery.is_delivered(), "never delivered");
        for (name, receiver) in &self.receivers {
            assert!(receiver.is_whole, "{name} never arrived");
            assert_eq!(receiver.bytes, self.contents[name]);
        }
    }
}

/// Acknowledgements are not signed: a foreign broker may send any number of them.
#[test]
fn forged_acknowledgements_do_not_grow_the_journal() {
    let mut lab = Lab::new([MAX_DATA * 3, 100]);
    lab.seal();
    let before = lab.journal_length();
    let length = (MAX_DATA * 3) as u64;
    for _ in 0..10_000 {
        for (committed, verdict) in [
            (length, None),
            (0, None),
            (length, None),
            (0, Some(StreamVerdict::Different)),
        ] {
            let stream = "log".parse().unwrap();
            let ack = Ack {
                stream,
                committed,
                verdict,
            };
            lab.delivery.acknowledge(&ack, lab.now);
        }
    }
    let grown = lab.journal_length() - before;
    assert!(grown < 1_000, "{grown} bytes");
    lab.now += Duration::from_secs(60);
    lab.drain();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_delivery_survives_power_cuts_between_any_two_steps(
        length in 0..MAX_DATA * 4,
        steps in steps(),
    ) {
        let mut lab = Lab::new([length, 100]);
        for step in &steps {
            lab.perform(step);
            lab.check();
        }
        lab.drain();
        lab.check();
    }
}
