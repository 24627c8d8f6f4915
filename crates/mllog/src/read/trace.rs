//! `mlperf_log_trace.json`, an event at a time.
//!
//! LoadGen writes Chrome's trace format with an event per line; the file is empty when tracing was off, and lacks its
//! end when the run was killed. Only that line form is read, so that a trace of any size fits.

use std::io::BufRead;

use serde::Deserialize;

use super::{
    json_fault::JsonFault,
    lines::{LineError, Lines},
};

/// An event as LoadGen's tracer writes it; times are in microseconds since the trace began.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an event")]
pub struct TraceEvent {
    /// What happened; `LastTrace` closes the file.
    pub name: String,
    /// Chrome's phase: `X` complete, `b`/`n`/`e` asynchronous begin, instant, end, `C` counter.
    #[serde(rename = "ph", default)]
    pub phase: Option<String>,
    /// When it began.
    #[serde(rename = "ts", default)]
    pub start_us: Option<f64>,
    /// How long it took.
    #[serde(rename = "dur", default)]
    pub duration_us: Option<f64>,
    /// The process.
    #[serde(default)]
    pub pid: Option<u64>,
    /// The thread.
    #[serde(default)]
    pub tid: Option<u64>,
    /// Joins the events of one asynchronous span.
    #[serde(default)]
    pub id: Option<u64>,
    /// What else was noted.
    #[serde(default)]
    pub args: serde_json::Map<String, serde_json::Value>,
}

/// A trace that does not read. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A line cannot be had as text.
    #[error("the trace does not read")]
    Line(#[from] LineError),
    /// The first line opens no list of events.
    #[error("line {line} of the trace opens no list of events")]
    NoList {
        /// Which line.
        line: u64,
    },
    /// A line that is no event.
    #[error("line {line} of the trace is no event")]
    Event {
        /// Which line.
        line: u64,
        /// What is wrong with it.
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
enum Place {
    Start,
    Events,
    End,
}

/// Iterates over the events of a trace; an empty file has none.
#[derive(Debug)]
pub struct TraceReader<R> {
    lines: Lines<R>,
    place: Place,
}

impl<R: BufRead> TraceReader<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> Self {
        Self {
            lines: Lines::new(input),
            place: Place::Start,
        }
    }

    fn advance(&mut self) -> Result<Option<TraceEvent>, TraceError> {
        loop {
            let text = match (self.lines.next().transpose()?, self.place) {
                (Some(text), _) => text,
                (None, Place::Start | Place::End) => return Ok(None),
                (None, Place::Events) => {
                    return Err(TraceError::EndsEarly {
                        line: self.lines.number() - 1,
                    });
                }
            };
            let line = self.lines.number();
            match (self.place, text.trim()) {
                (_, "") => {}
                (Place::Start, "{\"traceEvents\":[" | "[") => self.place = Place::Events,
                (Place::Start, _) => return Err(TraceError::NoList { line }),
                (Place::End, _) => {}
                (Place::Events, text) if text.starts_with(']') => self.place = Place::End,
                (Place::Events, text) => {
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

    /// Goes on after a line that is no event.
    fn next(&mut self) -> Option<Self::Item> {
        let event = self.advance();
        if matches!(
            event,
            Err(TraceError::EndsEarly { .. } | TraceError::NoList { .. })
        ) {
            self.place = Place::End;
        }
        event.transpose()
    }
}
