//! Reads `mlperf_log_trace.json` event by event.
//!
//! LoadGen writes Chrome's trace format with one event per line. The file is empty if tracing is off, and incomplete if the run
//! was killed. Only this line format is read, so a trace of any size needs little memory.

use std::io::BufRead;

use serde::Deserialize;

use super::{
    json_fault::JsonFault,
    lines::{LineError, Lines},
};

/// The longest line that is read, in bytes. An event has a few hundred.
const MAX_LINE: u64 = 1 << 20;

/// An event as LoadGen's tracer writes it. Times are in microseconds since the start of the trace.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an event")]
pub struct TraceEvent {
    /// The name of the event; `LastTrace` closes the file.
    pub name: String,
    /// Chrome's phase: `X` complete, `b`/`n`/`e` asynchronous begin, instant, end, `C` counter.
    #[serde(rename = "ph", default)]
    pub phase: Option<String>,
    /// The start time.
    #[serde(rename = "ts", default)]
    pub start_us: Option<f64>,
    /// The duration.
    #[serde(rename = "dur", default)]
    pub duration_us: Option<f64>,
    /// The process.
    #[serde(default)]
    pub pid: Option<u64>,
    /// The thread.
    #[serde(default)]
    pub tid: Option<u64>,
    /// The id that connects the events of one asynchronous span.
    #[serde(default)]
    pub id: Option<u64>,
    /// Additional values.
    #[serde(default)]
    pub args: serde_json::Map<String, serde_json::Value>,
}

/// The error if a trace cannot be read. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A line cannot be read as text.
    #[error("the trace cannot be parsed")]
    Line(#[from] LineError),
    /// The first line does not begin a list of events.
    #[error("line {line} of the trace opens no list of events")]
    NoList {
        /// The number of the line.
        line: u64,
    },
    /// A line is not an event.
    #[error("line {line} of the trace is not an event")]
    Event {
        /// The number of the line.
        line: u64,
        /// The reason.
        #[source]
        source: JsonFault,
    },
    /// The list of events is not closed: the run was killed, or the copy is incomplete.
    #[error("the trace ends too early, after line {line}")]
    EndsEarly {
        /// The last line.
        line: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TracePosition {
    Start,
    Events,
    End,
}

/// Iterates over the events of a trace. An empty file has none.
#[derive(Debug)]
pub struct TraceReader<R> {
    lines: Lines<R>,
    position: TracePosition,
}

impl<R: BufRead> TraceReader<R> {
    /// Creates a reader of `input`.
    pub fn new(input: R) -> Self {
        Self {
            lines: Lines::new(input, MAX_LINE),
            position: TracePosition::Start,
        }
    }

    fn advance(&mut self) -> Result<Option<TraceEvent>, TraceError> {
        loop {
            let text = match (self.lines.next().transpose()?, self.position) {
                (Some(text), _) => text,
                (None, TracePosition::Start | TracePosition::End) => return Ok(None),
                (None, TracePosition::Events) => {
                    return Err(TraceError::EndsEarly {
                        line: self.lines.number() - 1,
                    });
                }
            };
            let line = self.lines.number();
            match (self.position, text.trim()) {
                (_, "") => {}
                (TracePosition::Start, "{\"traceEvents\":[" | "[") => self.position = TracePosition::Events,
                (TracePosition::Start, _) => return Err(TraceError::NoList { line }),
                (TracePosition::End, _) => {}
                (TracePosition::Events, text) if text.starts_with(']') => self.position = TracePosition::End,
                (TracePosition::Events, text) => {
                    let event = serde_json::from_str(text.strip_suffix(',').unwrap_or(text));
                    return event
                        .map(Some)
                        .map_err(|error: serde_json::Error| TraceError::Event {
                            line,
                            source: JsonFault::in_line(&error, 0),
                        });
                }
            }
        }
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<TraceEvent, TraceError>;

    /// Continues after a line that is not an event.
    fn next(&mut self) -> Option<Self::Item> {
        let event = self.advance();
        if matches!(
            event,
            Err(TraceError::EndsEarly { .. } | TraceError::NoList { .. })
        ) {
            self.position = TracePosition::End;
        }
        event.transpose()
    }
}
