//! Tests of audit verification through its public functions.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may say what it expects")]
#![expect(clippy::print_stderr, reason = "prints which published audits it leaves out")]

mod accuracy;
mod explanations;
mod faults;
mod logs;
mod official;
mod part_three;
mod published;
mod scores;
