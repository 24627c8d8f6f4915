//! Director and system under test on this machine.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    SessionError,
    child::Child,
    hosts::{Director, SystemUnderTest},
    program::{Program, SUPERVISOR},
    samples::SampleFiles,
};

/// This machine as director.
#[derive(Debug)]
pub struct LocalDirector {
    python: PathBuf,
    server: Vec<OsString>,
    directory: PathBuf,
    samples: SampleFiles,
}

impl LocalDirector {
    /// Prepares the session's directory. `server` is the server's command, such as Python with the official server. `python` supervises it.
    ///
    /// # Errors
    /// [`SessionError::Io`]
    pub fn new(python: &Path, server: &[OsString], directory: &Path) -> Result<Self, SessionError> {
        let directory = std::path::absolute(directory).map_err(SessionError::at(directory))?;
        let temporary = directory.join("tmp");
        fs::create_dir_all(&temporary).map_err(SessionError::at(&temporary))?;
        Ok(Self {
            python: python.to_owned(),
            server: server.to_vec(),
            samples: SampleFiles::new(&temporary),
            directory,
        })
    }
}

impl Director for LocalDirector {
    fn start_server(&mut self, conf: &str) -> Result<Box<dyn Program>, SessionError> {
        let file = self.directory.join("server.conf");
        fs::write(&file, conf).map_err(SessionError::at(&file))?;
        let temporary = self.directory.join("tmp");
        let mut command = supervised(&self.python, &temporary, &self.server);
        command.arg("-c").arg(file);
        start(command, &self.python, &self.directory.join("server-output.txt"))
    }

    fn new_samples(&mut self) -> Vec<f64> {
        self.samples.read()
    }
}

/// This machine as system under test.
#[derive(Debug)]
pub struct LocalSystem {
    python: PathBuf,
    client: Vec<OsString>,
    directory: PathBuf,
    logs: PathBuf,
}

impl LocalSystem {
    /// Prepares the session's directory. `client` is the client's command, which `python` supervises; `logs` is where the workload puts
    /// LoadGen's logs.
    ///
    /// # Errors
    /// [`SessionError::Io`]
    pub fn new(
        python: &Path,
        client: &[OsString],
        directory: &Path,
        logs: &Path,
    ) -> Result<Self, SessionError> {
        let directory = std::path::absolute(directory).map_err(SessionError::at(directory))?;
        let logs = std::path::absolute(logs).map_err(SessionError::at(logs))?;
        // The client checks that it can write there.
        fs::create_dir_all(&logs).map_err(SessionError::at(&logs))?;
        Ok(Self {
            python: python.to_owned(),
            client: client.to_vec(),
            directory,
            logs,
        })
    }
}

impl SystemUnderTest for LocalSystem {
    fn logs(&self) -> String {
        self.logs.display().to_string()
    }

    fn output(&self) -> String {
        self.directory.join("session").display().to_string()
    }

    fn start_client(&mut self, arguments: &[String]) -> Result<Box<dyn Program>, SessionError> {
        let mut command = supervised(&self.python, Path::new(""), &self.client);
        command.args(arguments);
        start(command, &self.python, &self.directory.join("client-output.txt"))
    }

    fn collect(&mut self, directory: &Path) -> Result<(), SessionError> {
        let output = self.directory.join("session");
        match output == directory {
            // The client has put the files there.
            true => Ok(()),
            false => fs::rename(&output, directory).map_err(SessionError::at(directory)),
        }
    }
}

/// A program under its supervisor. Its supervisor accepts any silence, because standard input closes when this process ends.
fn supervised(python: &Path, temporary: &Path, program: &[OsString]) -> Command {
    let mut command = Command::new(python);
    command.args(["-c", SUPERVISOR, "0"]).arg(temporary);
    command.args(program);
    command
}

/// Starts a program of this machine whose standard input closes when this process ends. A copy of its output goes to a file.
///
/// # Errors
/// As the system reports.
pub fn start_here(command: Command, output: &Path) -> io::Result<Box<dyn Program>> {
    Ok(Box::new(Child::start(command, output)?))
}

fn start(command: Command, python: &Path, output: &Path) -> Result<Box<dyn Program>, SessionError> {
    start_here(command, output).map_err(SessionError::at(python))
}
