//! Exit codes, the same for every command of both binaries, and the failure that carries one to the edge.

use std::fmt;

use regatta_text::ErrorChain;

/// All is well.
pub(crate) const OK: u8 = 0;
/// The answer is no: a run is invalid, a check failed.
pub(crate) const NO: u8 = 1;
/// Wrong use: unknown words, files that contradict each other.
pub(crate) const USAGE: u8 = 2;
/// Could not: input or output, network, device.
pub(crate) const COULD_NOT: u8 = 3;

/// Why a command ends without a result, with its exit code. Displays the whole chain of causes as one line.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    error: anyhow::Error,
}

impl Failure {
    /// The user asked for something that cannot be: exit code 2.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self {
            code: USAGE,
            error: error.into(),
        }
    }

    /// The machine, the network or a file stands in the way: exit code 3.
    pub(crate) fn could_not(error: impl Into<anyhow::Error>) -> Self {
        Self {
            code: COULD_NOT,
            error: error.into(),
        }
    }

    /// The same failure, with another one told behind it.
    pub(crate) fn besides(self, other: anyhow::Error) -> Self {
        Self {
            error: anyhow::anyhow!("{:#}; besides, {other:#}", self.error),
            ..self
        }
    }

    /// The error itself, where it is of this type.
    pub(crate) fn error<E: std::error::Error + Send + Sync + 'static>(&self) -> Option<&E> {
        self.error.downcast_ref()
    }

    /// The exit code.
    pub const fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    /// The chain as one sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ErrorChain(self.error.as_ref()).fmt(f)
    }
}

/// What did not say that the user is to blame is the machine's fault.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::could_not(error)
    }
}
