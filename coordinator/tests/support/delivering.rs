//! Delivery by the simulated device: chunk by chunk, with the losses, doubles, flipped bits and wrong order of a test.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use regatta_types::{RunId, StreamName, documents::RunPhase};
use regatta_wire::{
    chunk::{Chunk, MAX_DATA},
    message::{Ack, Message as _, StreamEnd, StreamVerdict},
    topic::Leaf,
};
use sha2::{Digest as _, Sha256};

use super::{Dice, device::SimulatedDevice};

/// The summary among a run's files.
pub const SUMMARY: &str = "mlperf_log_summary.txt";
/// A summary that LoadGen calls VALID.
pub const VALID: &[u8] = b"================================================\n\
    MLPerf Results Summary\n\
    ================================================\n\
    SUT name : simulated\n\
    Scenario : Offline\n\
    Mode     : PerformanceOnly\n\
    Samples per second: 4538.07\n\
    Result is : VALID\n";

/// The fault rates: one chunk in N is affected; 0 is none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    pub lose: u64,
    pub double: u64,
    pub flip: u64,
    pub swap: u64,
}

impl Faults {
    /// All faults at once.
    pub const ALL: Self = Self {
        lose: 6,
        double: 5,
        flip: 9,
        swap: 4,
    };
}

impl SimulatedDevice {
    /// Sends a chunk as it is.
    pub fn send_chunk(&self, run: RunId, stream: &str, offset: u64, data: &[u8]) {
        self.say(
            Leaf::Log(run, name(stream)),
            Chunk { offset, data }.to_frame().unwrap(),
            false,
        );
    }

    /// Delivers streams until the coordinator has all of them, however often that takes; `between` is called now and then.
    pub fn deliver(
        &self,
        run: RunId,
        files: &BTreeMap<String, Vec<u8>>,
        faults: Faults,
        dice: &mut Dice,
        mut between: impl FnMut(u64),
    ) {
        let mut left: BTreeMap<StreamName, (usize, &[u8])> = files
            .iter()
            .map(|(stream, content)| (name(stream), (0, content.as_slice())))
            .collect();
        let (begun, mut heard) = (Instant::now(), 0_u64);
        for round in 0.. {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "never whole after {round} rounds and {heard} acknowledgements: {:?}",
                left.iter()
                    .map(|(name, (committed, _))| (name.as_str(), committed))
                    .collect::<Vec<_>>()
            );
            for (stream, (committed, content)) in &left {
                self.send_some(run, stream, *committed, content, faults, dice);
            }
            between(round);
            let deadline = Instant::now() + Duration::from_millis(60);
            while let Some((topic, payload)) = self.receive(deadline) {
                if topic.leaf != Leaf::Ack(run) {
                    continue;
                }
                heard += 1;
                let ack = Ack::from_frame(&payload).unwrap();
                let Some(entry) = left.get_mut(&ack.stream) else {
                    continue;
                };
                match ack.verdict {
                    Some(StreamVerdict::Equal) => drop(left.remove(&ack.stream)),
                    Some(StreamVerdict::Different) => entry.0 = 0,
                    // A forged chunk may have made the stream longer.
                    None => entry.0 = usize::try_from(ack.committed).unwrap().min(entry.1.len()),
                }
                // What follows is not about the delivery.
                if left.is_empty() {
                    return;
                }
            }
            if left.is_empty() {
                return;
            }
        }
    }

    /// Sends one long stream as fast as acknowledgements within a window allow. Without them it repeats from the acknowledged
    /// offset, and returns how often.
    pub fn pour(&self, run: RunId, stream: &str, content: &[u8], window: usize) -> u32 {
        let (mut committed, mut sent, mut repeats) = (0, 0, 0);
        loop {
            while sent < content.len() && sent < committed + window {
                let piece = &content[sent..content.len().min(sent + MAX_DATA)];
                self.send_chunk(run, stream, sent as u64, piece);
                sent += piece.len();
            }
            if committed == content.len() {
                let end = StreamEnd {
                    length: content.len() as u64,
                    sha256: Sha256::digest(content).into(),
                };
                self.say(Leaf::Log(run, name(stream)), end.to_frame().unwrap(), false);
            }
            let Some((topic, payload)) = self.receive(Instant::now() + Duration::from_secs(5)) else {
                repeats += 1;
                assert!(repeats < 20, "the coordinator does not answer");
                sent = committed;
                continue;
            };
            if topic.leaf != Leaf::Ack(run) {
                continue;
            }
            let ack = Ack::from_frame(&payload).unwrap();
            if ack.verdict == Some(StreamVerdict::Equal) {
                return repeats;
            }
            committed = committed.max(usize::try_from(ack.committed).unwrap());
        }
    }

    /// Sends a few chunks from the committed offset, and the end after the last one, with faults.
    fn send_some(
        &self,
        run: RunId,
        stream: &StreamName,
        committed: usize,
        content: &[u8],
        faults: Faults,
        dice: &mut Dice,
    ) {
        const PIECE: usize = 5_000;
        let mut frames = Vec::new();
        for offset in (committed..content.len()).step_by(PIECE).take(16) {
            let data = &content[offset..content.len().min(offset + PIECE)];
            frames.push(
                Chunk {
                    offset: offset as u64,
                    data,
                }
                .to_frame()
                .unwrap(),
            );
        }
        if committed == content.len() {
            let end = StreamEnd {
                length: content.len() as u64,
                sha256: Sha256::digest(content).into(),
            };
            frames.push(end.to_frame().unwrap());
        }
        for index in 1..frames.len() {
            if dice.hits(faults.swap) {
                frames.swap(index - 1, index);
            }
        }
        let leaf = Leaf::Log(run, stream.clone());
        for frame in frames {
            let mut payload = self.signed(&leaf, frame);
            if dice.hits(faults.lose) {
                continue;
            }
            if dice.hits(faults.double) {
                self.say_as_is(leaf.clone(), payload.clone(), false);
            }
            if dice.hits(faults.flip) {
                let bit = dice.below(payload.len() as u64 * 8) as usize;
                payload[bit / 8] ^= 1 << (bit % 8);
            }
            self.say_as_is(leaf.clone(), payload, false);
        }
    }

    /// Plays a complete honest run: accepted, executed, sealed, delivered, done. Returns its files.
    pub fn play(&mut self, faults: Faults, dice: &mut Dice) -> (RunId, BTreeMap<String, Vec<u8>>) {
        let (run, spec_json) = self.next_start();
        for phase in [
            RunPhase::Queued,
            RunPhase::Preparing,
            RunPhase::Ready,
            RunPhase::Running,
        ] {
            self.tell(run, phase, &[]);
        }
        let mut files = BTreeMap::from([
            ("mlperf_log_detail.txt".to_owned(), dice.bytes(300_000)),
            ("mlperf_log_accuracy.json".to_owned(), Vec::new()),
            (SUMMARY.to_owned(), VALID.to_vec()),
            ("run.log".to_owned(), dice.bytes(70_001)),
        ]);
        self.seal(run, &spec_json, &mut files);
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        self.tell(run, RunPhase::Draining, &names);
        self.deliver(run, &files, faults, dice, |_| {});
        self.tell(run, RunPhase::Done, &names);
        (run, files)
    }
}

fn name(text: &str) -> StreamName {
    text.parse().unwrap()
}
