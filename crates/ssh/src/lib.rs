//! The SSH link to a board or another machine, with libssh2: [`Session`] connects to an [`Access`] and executes commands, [`RemoteProgram`]
//! is a long-running program there, and [`RemoteFiles`] copies files. [`Board`] is the link as scripts see it, without SSH.
//!
//! The crate deploys nothing, and knows no command line.

mod access;
mod board;
mod config;
mod destination;
mod error;
mod files;
mod jump;
mod known_hosts;
mod login;
mod program;
mod prompt;
mod secret;
mod session;

pub use access::Access;
pub use board::{Board, END, LinkLost, Output, Root, Script, last_lines};
pub use config::{AccessOptions, SshConfig};
pub use destination::{Destination, DestinationError};
pub use error::SshError;
pub use files::{FetchLimits, RemoteFiles};
pub use program::{RemoteEnd, RemoteProgram};
pub use prompt::{Answer, Prompt, Question, retry_password};
pub use secret::Secret;
pub use session::Session;
