//! Runs `regatta-agent` with the kit's environment.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::outcome::Kit;

/// `regatta-agent` in a directory, with TensorRT, the shims and an engine cache.
pub(crate) struct Agent<'a> {
    kit: &'a Kit,
    directory: PathBuf,
    environment: Vec<(&'static str, &'static str)>,
}

impl<'a> Agent<'a> {
    /// Creates an agent that runs in `directory`, which also contains its engine cache.
    pub(crate) fn new(kit: &'a Kit, directory: &Path) -> Self {
        Self {
            kit,
            directory: directory.to_owned(),
            environment: Vec::new(),
        }
    }

    /// Sets a variable that changes the behaviour of the fake TensorRT. Does nothing with the real TensorRT.
    pub(crate) fn with_fake(mut self, variable: &'static str, value: &'static str) -> Self {
        if self.kit.has_fakes {
            self.environment.push((variable, value));
        }
        self
    }

    pub(crate) fn engines(&self) -> PathBuf {
        self.directory.join("engines")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kit.agent);
        command
            .args(arguments)
            .current_dir(&self.directory)
            .env_remove("MLPERF_SCRATCH_PATH")
            .env("REGATTA_PLUGINS", &self.kit.shims)
            .env("REGATTA_ENGINES", self.engines())
            .envs(self.environment.iter().copied());
        if let Some(tensorrt) = &self.kit.tensorrt {
            command.env("REGATTA_TENSORRT", tensorrt);
            if !self.kit.has_fakes {
                // TensorRT loads its builder's libraries by name.
                command.env("LD_LIBRARY_PATH", library_path(tensorrt));
            }
        }
        command
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        self.command(arguments)
            .output()
            .with_context(|| format!("{} cannot be started", self.kit.agent.display()))
    }

    /// Runs a command that must succeed and print JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let output = self.output(&[arguments, &["--format", "json"]].concat())?;
        if !output.status.success() {
            bail!("`regatta-agent {}`: {}", arguments.join(" "), message(&output));
        }
        serde_json::from_slice(&output.stdout).context("the agent printed no JSON")
    }

    /// Runs `bench`, and builds the missing engines. Returns its report.
    pub(crate) fn bench(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        const MAX_ENGINES: usize = 6;
        let arguments = [&["bench"], arguments, &["--format", "json"]].concat();
        for _ in 0..=MAX_ENGINES {
            let output = self.output(&arguments)?;
            let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            // LoadGen judges a run of one second as invalid, with exit code 1.
            if matches!(output.status.code(), Some(0 | 1)) && printed["verdict"].is_string() {
                return Ok(printed);
            }
            let Some(words) = printed["missing_engine"].as_array() else {
                bail!("`regatta-agent {}`: {}", arguments.join(" "), message(&output));
            };
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            let built = self.output(&words)?;
            if !built.status.success() {
                bail!("`regatta-agent {}`: {}", words.join(" "), message(&built));
            }
        }
        bail!("engines are still missing after {MAX_ENGINES} builds");
    }
}

/// Returns the library search path with a directory in front.
pub(crate) fn library_path(directory: &Path) -> std::ffi::OsString {
    let mut path = directory.as_os_str().to_owned();
    if let Some(more) = std::env::var_os("LD_LIBRARY_PATH").filter(|more| !more.is_empty()) {
        path.push(":");
        path.push(more);
    }
    path
}

/// Returns the last line that a program printed to standard error, which is the agent's error message.
pub(crate) fn message(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or_else(|| format!("{} without a message", output.status), str::to_owned)
}
