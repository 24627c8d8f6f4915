//! The submission checker: the official verdict with its gaps ([`as_official`]), and the rules themselves ([`strict`]).
//!
//! Both read the same [`Tree`](crate::tree::Tree) and never change it. Any content of the tree leads to a verdict.

mod accuracy_text;
mod endpoints;
mod finding;
mod first_values;
pub mod format;
mod hashed;
mod line_bytes;
mod lines;
mod log_line;
mod official;
mod place;
mod plain_line;
pub mod power;
mod round_of_seeds;
mod rules;
mod run_log;
mod strict;

pub use accuracy_text::last_figure;
pub use accuracy_text::metric as accuracy_metric;
pub use finding::{Finding, Rule, Severity};
pub use official::{Note, Official, OfficialError, Row, Verdict, as_official, csv};
pub use round_of_seeds::round_of_seeds;
pub use strict::{Facts, Latency, Metric, ResultRow, StrictReport, strict};

use crate::parallel;

/// The number of samples in a MultiStream query; the rules and LoadGen use no other number.
const MULTISTREAM_SAMPLES: f64 = 8.0;
