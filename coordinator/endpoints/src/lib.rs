//! Runs of MLCommons' endpoints harness: its unmodified client, from a checkout of the user's, measures a model server over HTTP with the
//! configuration that the round prescribes.
//!
//! The client's exit code and its `complete` say nothing about lost requests, so a run is followed in its `events.jsonl`, and its documents are
//! judged by themselves. The rules are judged in full by `regatta submission check`.

mod checkout;
mod client_config;
mod client_log;
mod client_process;
mod documents;
mod environment;
mod error;
mod events;
mod logged_program;
mod outcome;
mod server;
mod session;
mod stage;

pub use checkout::ClientCheckout;
pub use client_config::{ConfigChange, ServerTarget};
pub use environment::ClientEnvironment;
pub use error::EndpointsError;
pub use events::{ClientPhase, EndpointsProgress};
pub use outcome::{EndpointsOutcome, EndpointsProblem};
pub use session::{DeviceRun, EndpointsRequest, EndpointsSession, SessionEnd, run};
pub use stage::{StageRequest, StageTree, stage};
