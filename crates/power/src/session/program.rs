//! An official program while it runs, on this machine or on another one: its output, its input and its end.

use std::fmt;

/// The source of the supervisor, a Python program that starts an official program and always ends it.
pub const SUPERVISOR: &str = include_str!("supervisor.py");

/// A running program under its supervisor.
pub trait Program {
    /// Returns the lines that were printed since the last call.
    fn new_lines(&mut self) -> Vec<String>;

    /// Writes a line to its standard input. A program that no longer reads has ended, which [`Self::end`] reports.
    fn write_line(&mut self, line: &str);

    /// Returns how it ended, once it has.
    fn end(&mut self) -> Option<ProgramEnd>;

    /// Ends the program: interrupts it, waits for its end, and kills it if it continues.
    fn stop(&mut self);
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramEnd {
    /// With code 0.
    Succeeded,
    /// In any other way, in words.
    Failed(String),
    /// The result is unknown: the connection to its machine was lost. The supervisor ends the program there.
    LinkLost(String),
}

impl fmt::Display for ProgramEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded => f.write_str("exit code 0"),
            Self::Failed(status) => f.write_str(status),
            Self::LinkLost(reason) => write!(f, "the connection was lost: {reason}"),
        }
    }
}
