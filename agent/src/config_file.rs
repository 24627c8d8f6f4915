//! Where `agent.toml` is, and the file that `enroll` writes on a device without one. [`crate::config`] reads the content.

use std::{
    env, io,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use clap::Args;
use regatta_fsutil::atomic_file::AtomicFile;

use crate::{config::AgentConfig, exit::Failure};

/// The file that the Debian package writes.
const OF_SYSTEM: &str = "/etc/regatta/agent.toml";
/// The user's own file, below the home directory.
const OF_USER: &str = ".config/regatta/agent.toml";
/// The state directory that belongs to the user's own file, below the home directory.
const STATE_OF_USER: &str = ".local/state/regatta";
/// The state directory that belongs to a file elsewhere, beside it.
const STATE_BESIDE: &str = "state";

/// The content of a new file, before it gets a name and a state directory.
const EXAMPLE: &str = include_str!("../agent.example.toml");

/// The flag that names the configuration file.
#[derive(Debug, Args)]
pub(crate) struct ConfigFlag {
    /// The agent's configuration file [default: ~/.config/regatta/agent.toml if it exists, else /etc/regatta/agent.toml]
    #[arg(long = "config", value_name = "FILE", env = "REGATTA_AGENT_CONFIG")]
    path: Option<PathBuf>,
}

/// A configuration file that `enroll` made.
#[derive(Debug)]
pub(crate) struct NewConfig {
    /// The file.
    pub(crate) path: PathBuf,
    state_dir: PathBuf,
}

impl ConfigFlag {
    /// Reads the configuration, and returns its path with it.
    ///
    /// # Errors
    /// No file is named and none exists, or the file does not parse: wrong usage.
    pub(crate) fn load(&self) -> Result<(AgentConfig, PathBuf), Failure> {
        let path = self.existing().ok_or_else(|| {
            Failure::usage(anyhow!(
                "this device has no configuration: neither ~/{OF_USER} nor {OF_SYSTEM} exists; hint: `regatta-agent enroll TOKEN` \
                 writes one, --config names another file"
            ))
        })?;
        Ok((AgentConfig::load(&path).map_err(Failure::usage)?, path))
    }

    /// Reads the configuration. If there is none, writes one for a device of this name.
    ///
    /// # Errors
    /// The file does not parse (wrong usage) or cannot be written.
    pub(crate) fn load_or_create(&self, name: &str) -> Result<(AgentConfig, Option<NewConfig>), Failure> {
        let new = match (&self.path, self.existing()) {
            (Some(path), _) if is_missing(path) => NewConfig {
                path: path.clone(),
                state_dir: STATE_BESIDE.into(),
            },
            (_, Some(_)) => return Ok((self.load()?.0, None)),
            (_, None) => {
                let home = home().ok_or_else(|| {
                    Failure::usage(anyhow!(
                        "HOME is not set; hint: name the configuration file with --config FILE"
                    ))
                })?;
                NewConfig {
                    path: home.join(OF_USER),
                    state_dir: home.join(STATE_OF_USER),
                }
            }
        };
        new.write(name)?;
        let config = AgentConfig::load(&new.path).map_err(Failure::usage)?;
        Ok((config, Some(new)))
    }

    /// The named file, or the first of the usual ones that exists. A file that may not be read exists too.
    fn existing(&self) -> Option<PathBuf> {
        if let Some(path) = &self.path {
            return Some(path.clone());
        }
        let own = home().map(|home| home.join(OF_USER));
        let mut usual = own.into_iter().chain([PathBuf::from(OF_SYSTEM)]);
        usual.find(|path| !is_missing(path))
    }
}

impl NewConfig {
    /// Returns the command that starts the agent with this file.
    pub(crate) fn serve_command(&self) -> String {
        if home().is_some_and(|home| self.path == home.join(OF_USER)) {
            "regatta-agent serve".to_owned()
        } else {
            format!("regatta-agent serve --config {}", self.path.display())
        }
    }

    /// Removes the file again.
    pub(crate) fn remove(&self) {
        // A file that stays is reported by the next enrollment when its name differs.
        let _ = std::fs::remove_file(&self.path);
    }

    /// Writes the file for a device of this name. A later call replaces an earlier one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, name: &str) -> Result<(), Failure> {
        let written = match self.path.parent() {
            Some(parent) => std::fs::create_dir_all(parent),
            None => Ok(()),
        };
        let text = content(name, &self.state_dir);
        let written = written.and_then(|()| AtomicFile::new(&self.path).write(text.as_bytes()));
        written.map_err(|error| {
            let path = self.path.display();
            Failure::could_not(anyhow::Error::from(error).context(format!(
                "{path} cannot be written; hint: name another file with --config FILE"
            )))
        })
    }
}

/// The example with this name and state directory.
fn content(name: &str, state_dir: &Path) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let lines = EXAMPLE.lines().map(|line| match line.split_once(" = ") {
        Some(("name", _)) => format!("name = {}", quoted(name)),
        Some(("state_dir", _)) => format!("state_dir = {}", quoted(&state_dir.display().to_string())),
        _ => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}

fn home() -> Option<PathBuf> {
    env::var_os("HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from)
}

fn is_missing(path: &Path) -> bool {
    path.metadata()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_is_a_configuration_with_its_name_and_state_directory() {
        let place = tempfile::tempdir().unwrap();
        let new = NewConfig {
            path: place.path().join("deeper/agent.toml"),
            state_dir: "state".into(),
        };
        new.write("old").unwrap();
        new.write(r#"a "b" \c"#).unwrap();
        let config = AgentConfig::load(&new.path).unwrap();
        assert_eq!(config.name, r#"a "b" \c"#);
        assert_eq!(config.state_dir, place.path().join("deeper/state"));
    }
}
