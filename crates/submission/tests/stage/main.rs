//! Staging and inferring, through the public face: made-up runs become trees that the checker accepts, and whatever is
//! missing or not allowed is refused with its place and leaves nothing behind.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "test code; says why a test is skipped"
)]

mod accelerators;
mod infer;
mod official;
mod power;
mod refusals;
mod rehearsal;
mod submission;
mod templates;
