//! The exit codes of all commands, of both binaries.

use std::process;

/// The exit code of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ExitCode {
    /// The command did what it was told, and the answer is good.
    Success = 0,
    /// A negative answer: a run is invalid, too inexact or could not be judged, or a check failed.
    Negative = 1,
    /// Wrong use: unknown words, or files that contradict each other.
    Usage = 2,
    /// The command failed: input or output, network, device.
    Failed = 3,
    /// Ctrl-C ended the command, as shells report it.
    Interrupted = 130,
}

impl ExitCode {
    /// Returns the code with which another command of ours ended, or nothing if a signal ended it.
    #[must_use]
    pub fn of(status: process::ExitStatus) -> Option<Self> {
        let codes = [
            Self::Success,
            Self::Negative,
            Self::Usage,
            Self::Failed,
            Self::Interrupted,
        ];
        codes
            .into_iter()
            .find(|&code| status.code() == Some(i32::from(code as u8)))
    }
}

impl From<ExitCode> for process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}
