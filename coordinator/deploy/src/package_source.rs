//! Where packages come from, as a deployment sees it: those at hand, and those that can be made when a board needs another.

use super::{Package, ProgressReporter};

/// The reason why there is no package for a board.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no package of the agent for {architecture}{reason}")]
pub struct NoPackageError {
    /// Debian's name of the board's architecture.
    pub architecture: String,
    /// Why none could be made, with what joins it to the sentence. Empty where none was tried.
    pub reason: String,
    /// The command that makes or fetches one.
    pub hint: String,
}

/// A source of packages. Several boards use it at the same time.
pub trait PackageSource: Sync {
    /// Returns the packages at hand, the preferred ones first.
    fn at_hand(&self) -> Vec<Package>;

    /// Makes the packages for an architecture, or waits until another board's call has made them. Returns all packages at hand then.
    ///
    /// # Errors
    /// Returns [`NoPackageError`] with the command that helps.
    fn make(
        &self,
        architecture: &str,
        progress: &dyn ProgressReporter,
    ) -> Result<Vec<Package>, NoPackageError>;
}
