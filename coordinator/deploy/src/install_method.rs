//! The install methods of a package on a board.

/// The method of installing a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstallMethod {
    /// The Debian package, as root.
    System,
    /// The archive, for one user.
    User,
}
