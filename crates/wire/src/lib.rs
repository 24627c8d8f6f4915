//! The wire format between agent and coordinator: frames, topics and messages.
//!
//! The crate encodes messages as bytes and decodes them, and never panics on bytes from outside. It opens no
//! connection: the MQTT clients of agent and coordinator do.

pub mod chunk;
pub mod enrollment;
pub mod frame;
mod frame_kind;
pub mod message;
pub mod signed_command;
pub mod signed_report;
pub mod topic;

pub use frame_kind::FrameKind;
