//! Tests of the truncation of accuracy logs through its public functions.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may say what it expects")]

mod faults;
mod official;
mod oracle;
