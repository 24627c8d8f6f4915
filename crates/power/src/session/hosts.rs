//! The machines of a session: the director with server and meter, and the system under test with the client.
//! They may be one machine.

use std::path::Path;

use super::{SessionError, program::Program};

/// The machine of server and meter.
pub trait Director {
    /// Starts the official server with the text of a `server.conf`.
    ///
    /// # Errors
    /// [`SessionError`]
    fn start_server(&mut self, conf: &str) -> Result<Box<dyn Program>, SessionError>;

    /// Returns the watts of the meter's samples since the last call. A file that cannot be read yet has none.
    fn new_samples(&mut self) -> Vec<f64>;
}

/// The machine that is measured, with the client.
pub trait SystemUnderTest {
    /// The directory there in which the client finds LoadGen's logs.
    fn logs(&self) -> String;

    /// The directory there in which the client puts the session's files.
    fn output(&self) -> String;

    /// Starts the official client with its arguments.
    ///
    /// # Errors
    /// [`SessionError`]
    fn start_client(&mut self, arguments: &[String]) -> Result<Box<dyn Program>, SessionError>;

    /// Brings the session's files into a directory of this machine.
    ///
    /// # Errors
    /// [`SessionError`]
    fn collect(&mut self, directory: &Path) -> Result<(), SessionError>;
}
