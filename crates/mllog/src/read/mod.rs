//! Readers of the four files that a LoadGen run writes, for any LoadGen implementation.
//!
//! | file | reader | in memory |
//! |---|---|---|
//! | `mlperf_log_summary.txt` | [`Summary`] | the whole file (at most 1 MiB) |
//! | `mlperf_log_detail.txt` | [`DetailReader`], collected: [`DetailLog`] | a line; collected: all records (at most 64 MiB) |
//! | `mlperf_log_accuracy.json` | [`AccuracyReader`] | one buffer and one entry (at most 256 MiB, or as the caller says) |
//! | the same, without its responses | [`AccuracyScanner`] | one buffer |
//! | only the number of its responses | [`ResponseCount`] | one bit of each sample |
//! | `mlperf_log_trace.json` | [`TraceReader`] | a line |
//!
//! Readers accept any bytes without panicking, and their errors state the line or byte offset. They do not check results: a log
//! with `INVALID` is read like one with `VALID`.

mod accuracy;
mod accuracy_error;
mod detail;
mod detail_log;
mod detail_value;
mod file;
mod json_fault;
mod lines;
mod plain_entry;
mod response_count;
mod scan;
mod summary;
mod summary_error;
mod trace;
mod window;

pub use accuracy::{AccuracyEntry, AccuracyReader, MAX_RESPONSE};
pub use accuracy_error::AccuracyLogError;
pub use detail::{DetailError, DetailReader, DetailRecord};
pub use detail_log::DetailLog;
pub use detail_value::{Quirk, Value};
pub use file::{LogFileError, accuracy_file, detail_file, summary_file, trace_file};
pub use json_fault::JsonFault;
pub use lines::LineError;
pub use response_count::ResponseCount;
pub use scan::{AccuracyScanner, ScannedEntry};
pub use summary::{EarlyStopping, Requirement, Summary, SummaryEntry, Verdict};
pub use summary_error::SummaryError;
pub use trace::{TraceError, TraceEvent, TraceReader};

/// The official file names in LoadGen's output directory.
pub mod file_name {
    /// The summary for people: verdict, metric, statistics and settings.
    pub const SUMMARY: &str = "mlperf_log_summary.txt";
    /// The detail log for programs: one record per value.
    pub const DETAIL: &str = "mlperf_log_detail.txt";
    /// The logged responses.
    pub const ACCURACY: &str = "mlperf_log_accuracy.json";
    /// Chrome trace events; empty unless tracing is on.
    pub const TRACE: &str = "mlperf_log_trace.json";
}
