//! The quickstart's rehearsal of a power session. It runs `regatta power simulate` as a separate process, which continues in another
//! network namespace, and takes its result.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Context as _;
use regatta_power::power_dev::PowerDev;
use regatta_types::ExitCode;
use serde::Serialize;
use serde_json::Value;

use crate::exit::Failure;

/// The source of the official programs, for a hint.
const POWER_DEV_SOURCE: &str = "https://github.com/mlcommons/power-dev";

/// Checks that the official programs are where the user says, before anything is run.
///
/// # Errors
/// Returns an error when no directory is named, or it does not hold the programs.
pub(super) fn find_programs(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let Some(directory) = named else {
        return Err(
            Failure::misuse("a power session needs the official programs").hint(format!(
                "`git clone {POWER_DEV_SOURCE}`, then add `--power-dev power-dev`"
            )),
        );
    };
    PowerDev::open(directory).map_err(Failure::usage)?;
    Ok(std::path::absolute(directory)?)
}

/// The result of a rehearsed session.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct PowerRehearsal {
    /// The output of `regatta power simulate --format json`.
    document: Value,
}

impl PowerRehearsal {
    /// Rehearses a session in a new directory. Progress goes to standard error.
    ///
    /// # Errors
    /// Returns an error when the session was not completed.
    pub(super) fn play(power_dev: &Path, directory: &Path) -> Result<Self, Failure> {
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(anyhow::Error::new(error)
                    .context(format!("cannot empty {}", directory.display()))
                    .into());
            }
            _ => {}
        }
        let program = regatta_fsutil::own_program::own_program()
            .context("cannot determine the path of this executable")?;
        let output = Command::new(program)
            .args(["--format", "json", "power", "simulate", "--power-dev"])
            .arg(power_dev)
            .arg("--dir")
            .arg(directory)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("`regatta power simulate` does not start")?;
        // A session that the official checker rejects is a result too.
        if !output.status.success() && ExitCode::of(output.status) != Some(ExitCode::Negative) {
            return Err(Failure::could_not("the session was not completed").hint(format!(
                "the messages above have the reason; the official programs' logs are in {}",
                directory.display()
            )));
        }
        let document = serde_json::from_slice(&output.stdout)
            .context("the output of `regatta power simulate` cannot be parsed")?;
        Ok(Self { document })
    }

    /// Returns whether the official checker accepts the session.
    pub(super) fn is_good(&self) -> bool {
        self.document["official_pass"] == Value::Bool(true)
    }

    /// Formats the result in two lines.
    pub(super) fn text(&self) -> String {
        let checks = self.document["official_checks"].as_array();
        let checks = checks.map_or(&[][..], Vec::as_slice);
        let passed = checks.iter().filter(|check| check["passed"] == Value::Bool(true));
        format!(
            "power session      official checker: {} of {} checks passed, in {}\n\
             \x20                  REHEARSAL: PTDaemon is simulated. It measured nothing, and the session can never be submitted.",
            passed.count(),
            checks.len(),
            self.document["session"].as_str().unwrap_or_default(),
        )
    }
}
