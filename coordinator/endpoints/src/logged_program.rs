//! Programs whose output goes to a log.

use std::{
    fs::File,
    path::Path,
    process::{Command, Stdio},
};

use crate::EndpointsError;

/// Runs a program to its end, with its output in a log.
pub(crate) fn run_to_end(command: &mut Command, log: &Path) -> Result<(), EndpointsError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let file = File::options().create(true).append(true).open(log);
    let file = file.map_err(EndpointsError::file(log))?;
    let same = file.try_clone().map_err(EndpointsError::file(log))?;
    let failed = |reason: String| EndpointsError::Program { program, reason };
    match command.stdin(Stdio::null()).stdout(file).stderr(same).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(format!("{status}; its output is in {}", log.display()))),
        Err(error) => Err(failed(error.to_string())),
    }
}
