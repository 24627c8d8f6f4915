//! Exit codes and the one error type of the commands: what went wrong, the exit code, and a hint.
//!
//! Libraries and the modules below use their own errors. A command turns them into a [`Failure`], and `main` prints its chain once.

use std::fmt;

use regatta_text::{ErrorChain, escape_lines};

/// All is well.
pub(crate) const OK: u8 = 0;
/// The answer is no: a run is invalid, too inexact or could not be judged, a check failed.
pub(crate) const NO: u8 = 1;
/// Wrong use: unknown words, files that contradict each other.
pub(crate) const USAGE: u8 = 2;
/// The command could not do its work: input or output, network, device.
pub(crate) const COULD_NOT: u8 = 3;

/// What a command returns: its exit code, or why it could not.
pub type CommandResult = Result<u8, Failure>;

/// The error of a command.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    error: anyhow::Error,
    hint: Option<String>,
}

impl Failure {
    /// Wrong use of the command (exit 2).
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self {
            code: USAGE,
            error: error.into(),
            hint: None,
        }
    }

    /// Wrong use, in words of the command's own (exit 2).
    pub(crate) fn misuse(sentence: impl fmt::Display) -> Self {
        Self::usage(anyhow::anyhow!("{sentence}"))
    }

    /// The command could not do its work, in words of its own (exit 3).
    pub(crate) fn could_not(sentence: impl fmt::Display) -> Self {
        Self {
            code: COULD_NOT,
            error: anyhow::anyhow!("{sentence}"),
            hint: None,
        }
    }

    /// Says what the failure is about, such as a file.
    pub(crate) fn context(mut self, subject: impl fmt::Display) -> Self {
        self.error = self.error.context(subject.to_string());
        self
    }

    /// Adds what the user can do about it.
    pub(crate) fn hint(mut self, advice: impl fmt::Display) -> Self {
        self.hint = Some(advice.to_string());
        self
    }

    /// The process's exit code.
    pub const fn code(&self) -> u8 {
        self.code
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            code: COULD_NOT,
            error: error.into(),
            hint: None,
        }
    }
}

impl fmt::Display for Failure {
    /// The chain as one sentence, and the hint on a line of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "regatta: {}", ErrorChain(self.error.as_ref()))?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  {}", escape_lines(hint).replace('\n', "\n  "))?;
        }
        Ok(())
    }
}
