//! The device's state: power mode, clocks and fan. A privileged helper (`regatta-state`, run by systemd as root) sets it,
//! verifies it and always restores it.
//!
//! [`state_request`], [`message`] and [`client`] are what an agent needs to talk to the helper. [`device_control`],
//! [`board_controls`], [`control_error`], [`journal`], [`transaction`] and [`session`] are the helper. The helper has a fixed set of
//! operations. It accepts no path, command or free text from outside, and finds every file itself.
//!
//! The crate does not measure, and does not know any benchmarks. The coordinator decides which state a run gets, and the agent decides
//! whether a run may start. The only dependency is one system call that the standard library does not have ([`peer`]).

pub mod board_controls;
pub mod client;
pub mod control_error;
pub mod device_control;
pub mod journal;
pub mod message;
pub mod nvpmodel;
pub mod peer;
pub mod session;
pub mod state_request;
pub mod transaction;
