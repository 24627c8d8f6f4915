//! The packages of a deployment: the available ones, and those that can be built when a board needs another one.

use super::{Package, ProgressReporter};

/// There is no package for a board.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no package of the agent for {architecture}{reason}")]
pub struct NoPackageError {
    /// The board's architecture, as Debian names it.
    pub architecture: String,
    /// The reason why none could be built, preceded by a separator. Empty if no build was attempted.
    pub reason: String,
    /// The command that builds or fetches a package.
    pub hint: String,
}

/// A source of packages. Several boards use it concurrently.
pub trait PackageSource: Sync {
    /// Returns the available packages, in order of preference.
    fn at_hand(&self) -> Vec<Package>;

    /// Builds the packages for an architecture, or waits until the call of another board has built them. Returns all available packages.
    ///
    /// # Errors
    /// Returns [`NoPackageError`] with the command that helps.
    fn make(
        &self,
        architecture: &str,
        progress: &dyn ProgressReporter,
    ) -> Result<Vec<Package>, NoPackageError>;
}
