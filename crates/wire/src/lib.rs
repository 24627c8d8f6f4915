//! What agent and coordinator say to each other: frames, topics and messages.
//!
//! The crate turns messages into bytes and back and never panics on bytes from outside. It opens no connection: the
//! links of agent and coordinator do.

pub mod chunk;
pub mod enrolment;
pub mod frame;
pub mod message;
pub mod signed;
pub mod topic;
