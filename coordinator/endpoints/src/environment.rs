//! The Python environment of the client: a virtual environment with the packages that the checkout names. The client itself is not installed
//! but imported from its checkout.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use crate::{ClientCheckout, EndpointsError, logged_program::run_to_end};

/// Looked for when none is named.
const PYTHONS: [&str; 5] = ["python3.12", "python3.13", "python3.14", "python3.15", "python3"];
/// The oldest version that the client runs on.
const OLDEST: (u32, u32) = (3, 12);
const REQUIREMENTS: &str = include_str!("requirements.py");
/// Imports all that a run needs.
const TRIAL: &str =
    "import inference_endpoint.main; from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker";
/// Exists when the environment is complete, and contains the client's commit.
const READY: &str = "ready";

/// A Python that has the client's packages.
#[derive(Debug, Clone)]
pub struct ClientEnvironment {
    directory: PathBuf,
}

impl ClientEnvironment {
    /// Returns the environment in a directory.
    ///
    /// # Errors
    /// [`EndpointsError::NotSetUp`] when [`set_up`](Self::set_up) has not completed there.
    pub fn open(directory: &Path) -> Result<Self, EndpointsError> {
        if !directory.join(READY).is_file() {
            return Err(EndpointsError::NotSetUp(directory.to_owned()));
        }
        Ok(Self {
            directory: directory.to_owned(),
        })
    }

    /// Makes the environment, or brings it up to date with the checkout. Does nothing when it is. `python` is the Python to make it with; without one, the usual names are
    /// tried. `step` is called with each step.
    ///
    /// # Errors
    /// [`EndpointsError::NoPython`], or [`EndpointsError::Program`] when pip fails.
    pub fn set_up(
        directory: &Path,
        checkout: &ClientCheckout,
        python: Option<&Path>,
        step: &mut dyn FnMut(&str),
    ) -> Result<Self, EndpointsError> {
        let environment = Self {
            directory: directory.to_owned(),
        };
        fs::create_dir_all(directory).map_err(EndpointsError::file(directory))?;
        let lock = directory.join("lock");
        let lock = File::create(&lock)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(EndpointsError::file(&lock))?;
        let ready = directory.join(READY);
        if fs::read_to_string(&ready).is_ok_and(|commit| commit == checkout.commit()) {
            return Ok(environment);
        }
        let log = directory.join("setup.log");
        // It is incomplete from here on.
        let _ = fs::remove_file(&ready);
        if !environment.python().exists() {
            let base = base_python(python)?;
            step(&format!("making a virtual environment with {}", base.display()));
            let mut venv = Command::new(base);
            run_to_end(venv.args(["-m", "venv"]).arg(directory), &log)?;
        }
        let script = directory.join("requirements.py");
        fs::write(&script, REQUIREMENTS).map_err(EndpointsError::file(&script))?;
        for (what, options, words) in [
            ("client", &[][..], "installing the client's packages"),
            (
                "bfcl",
                &["--no-deps"][..],
                "installing the accuracy data sets and their scorer",
            ),
            ("further", &[][..], "installing the scorer's packages"),
        ] {
            step(words);
            environment.install(&script, what, options, checkout, &log)?;
        }
        step("importing the client");
        run_to_end(environment.command(checkout).args(["-c", TRIAL]), &log)?;
        fs::write(&ready, checkout.commit()).map_err(EndpointsError::file(&ready))?;
        drop(lock);
        Ok(environment)
    }

    fn install(
        &self,
        script: &Path,
        what: &str,
        options: &[&str],
        checkout: &ClientCheckout,
        log: &Path,
    ) -> Result<(), EndpointsError> {
        let mut list = Command::new(self.python());
        let output = list.arg(script).arg(what).arg(checkout.root()).output();
        let output = output.map_err(EndpointsError::file(self.python()))?;
        if !output.status.success() {
            return Err(EndpointsError::Program {
                program: script.display().to_string(),
                reason: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            });
        }
        let file = self.directory.join(format!("{what}.txt"));
        fs::write(&file, output.stdout).map_err(EndpointsError::file(&file))?;
        let mut pip = Command::new(self.python());
        pip.args(["-m", "pip", "install", "--disable-pip-version-check"])
            .args(options)
            .arg("-r")
            .arg(&file);
        run_to_end(&mut pip, log)
    }

    /// Returns the path of the environment's Python.
    pub(crate) fn python(&self) -> PathBuf {
        self.directory.join("bin/python")
    }

    /// Returns a command of the client's Python, in the checkout, to which paths in the reference's configuration are relative. It leaves no
    /// compiled files there.
    pub(crate) fn command(&self, checkout: &ClientCheckout) -> Command {
        let mut command = Command::new(self.python());
        command
            .current_dir(checkout.root())
            .env("PYTHONPATH", checkout.root().join("src"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// Returns the installed packages with their versions, a line each.
    pub(crate) fn packages(&self) -> Result<String, EndpointsError> {
        let mut pip = Command::new(self.python());
        let output = pip
            .args(["-m", "pip", "freeze", "--disable-pip-version-check"])
            .output();
        let output = output.map_err(EndpointsError::file(self.python()))?;
        if !output.status.success() {
            return Err(EndpointsError::Program {
                program: "pip freeze".to_owned(),
                reason: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Returns the first Python that is new enough.
fn base_python(named: Option<&Path>) -> Result<PathBuf, EndpointsError> {
    let candidates: Vec<PathBuf> = match named {
        Some(python) => vec![python.to_owned()],
        None => PYTHONS.iter().map(PathBuf::from).collect(),
    };
    let is_new = |python: &&PathBuf| version(python).is_some_and(|version| version >= OLDEST);
    candidates.iter().find(is_new).cloned().ok_or_else(|| {
        let names: Vec<String> = candidates
            .iter()
            .map(|python| python.display().to_string())
            .collect();
        EndpointsError::NoPython(names.join(", "))
    })
}

fn version(python: &Path) -> Option<(u32, u32)> {
    let output = Command::new(python)
        .args(["-c", "import sys; print(*sys.version_info[:2])"])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
