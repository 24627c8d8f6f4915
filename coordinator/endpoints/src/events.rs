//! Follows the client's `events.jsonl` while it grows. One lost request cannot be repaired, so the first one is noticed during the run. The
//! client writes 1,000 events at a time; the number of answers is known earlier, from the bar that it draws in its log.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
    path::PathBuf,
};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

/// The maximum size of an event in bytes. A request contains its conversation.
const MAX_EVENT: u64 = 64 << 20;
/// The characters of a loss that are kept.
const MAX_LOSS: usize = 300;

/// The part of a run that the client is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientPhase {
    /// It loads data sets and tokenizer.
    Starting,
    Performance,
    Accuracy,
    /// It scores the responses.
    Ended,
}

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointsProgress {
    /// As far as the client wrote its events.
    pub phase: ClientPhase,
    /// Requests of both phases with an answer.
    pub completed: u64,
    /// What the client says of the first lost request.
    pub lost: Option<String>,
}

#[derive(Deserialize)]
struct Event {
    event_type: String,
    #[serde(default)]
    conversation_id: String,
    #[expect(
        dead_code,
        reason = "skipped without being built: it contains the conversation"
    )]
    #[serde(default)]
    data: Option<IgnoredAny>,
}

/// Reads the events of a run.
#[derive(Debug)]
pub(crate) struct EventFollower {
    file: Option<BufReader<File>>,
    /// The received part of an event.
    line: Vec<u8>,
    /// Events of answers.
    answered: u64,
    progress: EndpointsProgress,
}

impl EventFollower {
    /// Creates a follower without a file.
    pub(crate) const fn new() -> Self {
        Self {
            file: None,
            line: Vec::new(),
            answered: 0,
            progress: EndpointsProgress {
                phase: ClientPhase::Starting,
                completed: 0,
                lost: None,
            },
        }
    }

    pub(crate) const fn progress(&self) -> &EndpointsProgress {
        &self.progress
    }

    /// Takes the number of answers from the client's log.
    pub(crate) fn set_completed(&mut self, completed: u64) {
        let progress = &mut self.progress;
        progress.completed = progress.completed.max(completed);
        if progress.phase == ClientPhase::Starting && completed > 0 {
            progress.phase = ClientPhase::Performance;
        }
    }

    /// Reads what was added since the last call. `find` returns the file's path until there is one. The client removes the file at its end,
    /// but an open one can still be read.
    ///
    /// # Errors
    /// Fails when the file cannot be read, or when an event is too long or is not one.
    pub(crate) fn read_from(&mut self, find: impl FnOnce() -> Option<PathBuf>) -> io::Result<()> {
        if self.file.is_none()
            && let Some(path) = find()
        {
            self.file = Some(BufReader::new(File::open(path)?));
        }
        while let Some(file) = &mut self.file {
            let left = MAX_EVENT.saturating_sub(self.line.len() as u64);
            if file.by_ref().take(left).read_until(b'\n', &mut self.line)? == 0 {
                if left == 0 {
                    return Err(invalid("an event is longer than 64 MiB"));
                }
                break;
            }
            if self.line.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.receive(&line)?;
            }
        }
        Ok(())
    }

    fn receive(&mut self, line: &[u8]) -> io::Result<()> {
        let event: Event = serde_json::from_slice(line).map_err(io::Error::from)?;
        let progress = &mut self.progress;
        match event.event_type.as_str() {
            "session.start_performance_tracking" => progress.phase = ClientPhase::Performance,
            "session.stop_performance_tracking" => progress.phase = ClientPhase::Accuracy,
            "session.ended" => progress.phase = ClientPhase::Ended,
            "sample.complete" => self.answered += 1,
            kind if kind.starts_with("error.") && progress.lost.is_none() => {
                progress.lost = Some(loss(line, kind, &event.conversation_id));
            }
            _ => {}
        }
        progress.completed = progress.completed.max(self.answered);
        Ok(())
    }
}

/// Returns what an event says of a lost request.
fn loss(line: &[u8], kind: &str, conversation: &str) -> String {
    let event: Value = serde_json::from_slice(line).unwrap_or_default();
    let words = event["data"].as_array().into_iter().flatten();
    let words: Vec<&str> = words.skip(1).filter_map(Value::as_str).collect();
    let text = if words.is_empty() {
        kind.to_owned()
    } else {
        words.join(": ")
    };
    let place = if conversation.is_empty() {
        String::new()
    } else {
        format!(" (conversation {conversation})")
    };
    let text: String = text.chars().take(MAX_LOSS).collect();
    format!("{text}{place}")
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn events_are_read_while_they_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let mut follower = EventFollower::new();
        let read = |follower: &mut EventFollower| {
            let found = Some(path.clone()).filter(|path| path.is_file());
            follower.read_from(|| found).map(|()| follower.progress().clone())
        };
        assert_eq!(read(&mut follower).unwrap().phase, ClientPhase::Starting);
        let mut file = File::create(&path).unwrap();
        let mut write = |text: &str| file.write_all(text.as_bytes()).unwrap();
        write(
            "{\"event_type\":\"session.start_performance_tracking\",\"data\":null}\n{\"event_type\":\"sample.com",
        );
        let progress = read(&mut follower).unwrap();
        assert_eq!(
            (progress.phase, progress.completed),
            (ClientPhase::Performance, 0)
        );
        write("plete\",\"data\":[1]}\n{\"event_type\":\"session.stop_performance_tracking\"}\n");
        write("{\"event_type\":\"sample.complete\",\"data\":[\"PromptData\"]}\n");
        let progress = read(&mut follower).unwrap();
        assert_eq!((progress.phase, progress.completed), (ClientPhase::Accuracy, 2));
        write(
            "{\"event_type\":\"error.generic\",\"conversation_id\":\"flask\",\"data\":[\"ErrorData\",\"ConnectionResetError\",\"lost\"]}\n",
        );
        let lost = read(&mut follower).unwrap().lost.unwrap();
        assert_eq!(lost, "ConnectionResetError: lost (conversation flask)");
        write("no event\n");
        assert!(read(&mut follower).is_err());
    }
}
