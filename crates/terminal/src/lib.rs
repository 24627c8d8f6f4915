//! What both programs share to write to a terminal: the log with its flags, and the terminal's width.
//!
//! The crate does not choose what is printed.

mod json_lines;
mod log;
mod terminal;

pub use log::{EVERYWHERE, LogFormat, LogOptions};
pub use terminal::{columns, fit};
