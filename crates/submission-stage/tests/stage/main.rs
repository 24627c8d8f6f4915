//! Tests of staging and inferring through the public functions. Synthetic runs become trees that the checker accepts. Anything
//! missing or not allowed is refused with its place, and leaves no files.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may say what it expects")]

mod accelerators;
mod infer;
mod official;
mod power;
mod refusals;
mod rehearsal;
mod submission;
mod templates;
