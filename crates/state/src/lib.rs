//! The device's state: power mode, clocks, fan. Holds what the agent says to the helper that has root ([`wish`],
//! [`message`], [`client`]), and the helper itself ([`knob`], [`board`], [`journal`], [`transaction`], [`session`]), whose
//! operations are fixed: it takes no path, no command and no text from outside, and finds every file by itself.
//!
//! It measures nothing and knows no benchmark; which state a run wants is the coordinator's affair, whether a run may
//! begin is the agent's. Needs the standard library alone, with one system call beside it ([`peer`]).

pub mod board;
pub mod client;
pub mod journal;
pub mod knob;
pub mod message;
pub mod peer;
pub mod session;
pub mod transaction;
pub mod wish;
