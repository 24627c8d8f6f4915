//! The official checker's verdict on a session: power-dev's `check.py`, started and read.

use std::{io, path::Path, process::Command};

use regatta_power::power_dev::PowerDev;
use serde::Serialize;

/// One line of the official checker.
#[derive(Debug, Serialize)]
pub(crate) struct OfficialCheck {
    /// The checker's name for it.
    pub(crate) name: String,
    /// Whether the session passed.
    pub(crate) passed: bool,
}

/// What the official checker says.
#[derive(Debug)]
pub(crate) struct OfficialVerdict {
    /// The checks, in order.
    pub(crate) checks: Vec<OfficialCheck>,
    /// Whether its exit code accepts the session.
    pub(crate) passes: bool,
}

impl OfficialVerdict {
    /// Runs the checker.
    pub(crate) fn of(python: &Path, power_dev: &PowerDev, session: &Path) -> io::Result<Self> {
        let output = Command::new(python)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg(power_dev.checker())
            .arg(session)
            .output()?;
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let check = |line: &str| {
            let (mark, name) = line.split_once("] ")?;
            let passed = match mark.trim_start().rsplit('[').next()? {
                "x" => true,
                " " => false,
                _ => return None,
            };
            let name = name.trim().to_owned();
            Some(OfficialCheck { name, passed })
        };
        Ok(Self {
            checks: text.lines().filter_map(check).collect(),
            passes: output.status.success(),
        })
    }

    /// The verdict in a few words.
    pub(crate) fn summary(&self) -> String {
        let passed = self.checks.iter().filter(|check| check.passed).count();
        format!("{passed} of {} checks passed", self.checks.len())
    }
}
