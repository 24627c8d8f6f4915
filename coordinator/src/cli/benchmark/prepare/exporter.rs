//! Exports networks from published weights with the Python tools of this repository. They run in a virtual environment in the workspace, or in a
//! Python that the user names.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use regatta_text::quote_for_shell_if_needed;
use regatta_types::benchmark::Model;

use crate::{cli::context::tell, exit::Failure};

/// A Python tool that exports networks.
#[derive(Debug, Clone, Copy)]
struct Tool {
    name: &'static str,
    text: &'static str,
    /// The packages that it imports.
    packages: &'static [&'static str],
    /// The packages for weights in an `.npz`, for which PyTorch is not needed.
    npz_packages: &'static [&'static str],
}

impl Tool {
    /// Returns the tool for a model and its weights.
    fn of(model: &Model, weights: &Path) -> Self {
        let tool = if model.transducer.is_some() { RNNT } else { WHISPER };
        let is_npz = weights.extension().is_some_and(|ending| ending == "npz");
        Self {
            packages: if is_npz { tool.npz_packages } else { tool.packages },
            ..tool
        }
    }
}

const RNNT: Tool = Tool {
    name: "export-rnnt",
    text: include_str!("../../../../../tools/export-rnnt"),
    packages: &["numpy", "onnx", "torch"],
    npz_packages: &["numpy", "onnx"],
};
const WHISPER: Tool = Tool {
    name: "export-whisper",
    text: include_str!("../../../../../tools/export-whisper"),
    packages: &["numpy", "onnx"],
    npz_packages: &["numpy", "onnx"],
};
/// A module that both tools import.
const GRAPH: (&str, &str) = (
    "onnx_graph.py",
    include_str!("../../../../../tools/onnx_graph.py"),
);

/// The tools, and the Python that runs them.
#[derive(Debug)]
pub(super) struct Exporter<'a> {
    /// The directory of the tools and the virtual environment.
    pub(super) directory: PathBuf,
    /// The Python that the user named.
    pub(super) python: Option<&'a Path>,
}

impl Exporter<'_> {
    /// Exports a model's networks from its weights.
    ///
    /// # Errors
    /// Returns an error when Python or a package is missing, or when the tool fails.
    pub(super) fn export(&self, model: &Model, weights: &Path, scratch: &Path) -> Result<(), Failure> {
        let tool = Tool::of(model, weights);
        let python = self.python(tool)?;
        let script = self.write_tool(tool)?;
        let network = scratch.join(&model.file);
        let into = network.parent().unwrap_or(scratch);
        make_directory(into)?;
        let mut command = Command::new(&python);
        command.arg(&script).arg(weights).arg(into);
        run(&mut command, &format!("tools/{}", tool.name))?;
        let mut files = model.files().into_iter();
        match files.find(|path| !scratch.join(path).is_file()) {
            None => Ok(()),
            Some(missing) => Err(Failure::could_not(format!(
                "tools/{} did not make {}",
                tool.name,
                scratch.join(missing).display()
            ))),
        }
    }

    /// Returns a Python that has the tool's packages: the one that the user named, or the virtual environment's, which is created if necessary.
    fn python(&self, tool: Tool) -> Result<PathBuf, Failure> {
        if let Some(python) = self.python {
            if has_packages(python, tool) {
                return Ok(python.to_owned());
            }
            return Err(Failure::usage(anyhow::anyhow!(
                "{} does not have {}",
                python.display(),
                tool.packages.join(", ")
            ))
            .hint(format!(
                "install them: {} -m pip install {}",
                quote_for_shell_if_needed(&python.to_string_lossy()),
                tool.packages.join(" ")
            )));
        }
        let environment = self.directory.join("venv");
        let python = environment.join("bin/python");
        if has_packages(&python, tool) {
            return Ok(python);
        }
        tell(&format!(
            "installing {} into {}",
            tool.packages.join(", "),
            environment.display()
        ));
        make_directory(&self.directory)?;
        let installed = run(
            Command::new("python3").args(["-m", "venv"]).arg(&environment),
            "python3 -m venv",
        )
        .and_then(|()| {
            let mut pip = Command::new(&python);
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
            run(pip.args(tool.packages), "pip")
        });
        installed.map_err(|failure| {
            failure.hint(format!(
                "on a machine that can install them, or by hand: a Python with {} is used with --python FILE; \
                 networks that tools/{} made elsewhere are used if they are in the scratch directory",
                tool.packages.join(", "),
                tool.name
            ))
        })?;
        Ok(python)
    }

    fn write_tool(&self, tool: Tool) -> Result<PathBuf, Failure> {
        make_directory(&self.directory)?;
        for (name, text) in [(tool.name, tool.text), GRAPH] {
            let path = self.directory.join(name);
            fs::write(&path, text)
                .map_err(|error| Failure::could_not(format!("cannot write {}: {error}", path.display())))?;
        }
        Ok(self.directory.join(tool.name))
    }
}

fn has_packages(python: &Path, tool: Tool) -> bool {
    let imports = format!("import {}", tool.packages.join(", "));
    let mut command = Command::new(python);
    command.args(["-c", &imports]).stdin(Stdio::null());
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn make_directory(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory)
        .map_err(|error| Failure::could_not(format!("cannot make {}: {error}", directory.display())))
}

/// Runs a program. If it fails, the last line that it prints to standard error is the reason.
fn run(command: &mut Command, name: &str) -> Result<(), Failure> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::could_not(format!("{name} cannot be started: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let printed = [output.stderr, output.stdout].map(|text| String::from_utf8_lossy(&text).into_owned());
    let mut lines = printed.iter().flat_map(|text| text.lines().rev());
    let reason = lines
        .find(|line| !line.trim().is_empty())
        .unwrap_or("it printed nothing");
    Err(Failure::could_not(format!("{name} failed: {reason}")))
}
