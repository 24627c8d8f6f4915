//! Who has to act on an error: the command line turns it into an exit code, the page into an HTTP status.

/// Who has to act on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The person who asked: unknown names, missing or contradictory input, or an output that exists.
    Usage,
    /// Nobody who asked: input or output, a device or a program failed.
    Internal,
}
