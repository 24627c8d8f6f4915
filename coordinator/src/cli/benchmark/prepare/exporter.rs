//! Exports networks from published weights with the Python tools of this repository. They run in a virtual environment in the workspace, or in a
//! Python that the user names.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use regatta_fsutil::{atomic_file::sync_directory, regular_file};
use regatta_text::quote_for_shell_if_needed;
use regatta_types::benchmark::{Benchmark, Detections, Model};

use crate::{cli::context::tell, exit::Failure};

/// A Python tool that exports networks.
#[derive(Debug, Clone, Copy)]
struct Tool {
    name: &'static str,
    text: &'static str,
}

impl Tool {
    /// Returns the tool for a model.
    fn of(model: &Model) -> Option<Self> {
        let of_loop = [
            model.transducer.as_ref().map(|_| RNNT),
            model.encoder_decoder.as_ref().map(|_| WHISPER),
            model.diffusion.as_ref().map(|_| SDXL),
        ];
        of_loop.into_iter().flatten().next().or(match &model.detections {
            Some(Detections::Heads(_)) => Some(RETINANET),
            Some(Detections::DefaultBoxes(_)) => Some(SSD),
            _ => None,
        })
    }
}

/// Returns whether a tool exports the networks of a model from its published weights.
pub(super) fn exports(model: &Model) -> bool {
    Tool::of(model).is_some()
}

const RNNT: Tool = Tool {
    name: "export-rnnt",
    text: include_str!("../../../../../tools/export-rnnt"),
};
const WHISPER: Tool = Tool {
    name: "export-whisper",
    text: include_str!("../../../../../tools/export-whisper"),
};
const SDXL: Tool = Tool {
    name: "export-sdxl",
    text: include_str!("../../../../../tools/export-sdxl"),
};
const RETINANET: Tool = Tool {
    name: "export-retinanet",
    text: include_str!("../../../../../tools/export-retinanet"),
};
const SSD: Tool = Tool {
    name: "export-ssd",
    text: include_str!("../../../../../tools/export-ssd"),
};
/// The packages that the tools import. A Python that the user names may have any version of them.
const PACKAGES: [&str; 2] = ["numpy", "onnx"];
/// The versions that the virtual environment has, for pip: a line `NAME==VERSION` for each package.
const REQUIREMENTS: &str = include_str!("../../../../../tools/export-requirements.txt");
/// Modules that the tools import from their directory.
const MODULES: [(&str, &str); 5] = [
    (
        "onnx_graph.py",
        include_str!("../../../../../tools/onnx_graph.py"),
    ),
    (
        "detection_graph.py",
        include_str!("../../../../../tools/detection_graph.py"),
    ),
    (
        "torch_file.py",
        include_str!("../../../../../tools/torch_file.py"),
    ),
    (
        "safetensors_file.py",
        include_str!("../../../../../tools/safetensors_file.py"),
    ),
    (
        "transformer_graph.py",
        include_str!("../../../../../tools/transformer_graph.py"),
    ),
];

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
    /// Returns an error when there is no tool for the model, when Python or a package is missing, or when the tool fails.
    pub(super) fn export(
        &self,
        benchmark: &Benchmark,
        weights: &Path,
        scratch: &Path,
    ) -> Result<(), Failure> {
        let model = &benchmark.model;
        let tool = Tool::of(model).ok_or_else(|| Failure::could_not("no tool exports this model"))?;
        let python = self.python(tool)?;
        let script = self.write_tool(tool)?;
        let network = scratch.join(&model.file);
        let into = network.parent().unwrap_or(scratch);
        let work = WorkDirectory::create(into)?;
        let mut command = Command::new(&python);
        command.arg(&script);
        if let Some(network) = &model.encoder_decoder {
            // The last token of a transcript is no input.
            let positions = (network.prompt.len() + network.most_tokens).saturating_sub(1);
            command.arg("--positions").arg(positions.to_string());
        }
        command.arg(weights).arg(&work.0);
        run(&mut command, &format!("tools/{}", tool.name))?;
        let files = model.files();
        let is_published =
            |path: &&String| benchmark.downloads.iter().any(|download| download.path == **path);
        let names: Vec<&Path> = files
            .iter()
            .filter(|path| !is_published(path))
            .filter_map(|path| Path::new(path).file_name().map(Path::new))
            .collect();
        for name in &names {
            sync_exported(&work.0.join(name)).map_err(|error| {
                Failure::could_not(format!(
                    "tools/{} did not make {}: {error}",
                    tool.name,
                    into.join(name).display()
                ))
            })?;
        }
        replace(&work.0, into, &names)
            .map_err(|error| Failure::could_not(format!("cannot write to {}: {error}", into.display())))
    }

    /// Returns a Python that has the tool's packages: the one that the user named, or the virtual environment's, which is created if necessary.
    fn python(&self, tool: Tool) -> Result<PathBuf, Failure> {
        if let Some(python) = self.python {
            if has_packages(python) {
                return Ok(python.to_owned());
            }
            return Err(Failure::usage(anyhow::anyhow!(
                "{} does not have {}",
                python.display(),
                PACKAGES.join(", ")
            ))
            .hint(format!(
                "install them: {} -m pip install {}",
                quote_for_shell_if_needed(&python.to_string_lossy()),
                required_packages().join(" ")
            )));
        }
        let environment = self.directory.join("venv");
        let python = environment.join("bin/python");
        if has_required_versions(&python) {
            return Ok(python);
        }
        tell(&format!(
            "installing {} into {}",
            required_packages().join(", "),
            environment.display()
        ));
        let requirements = self.write_file("requirements.txt", REQUIREMENTS)?;
        let installed = run(
            Command::new("python3").args(["-m", "venv"]).arg(&environment),
            "python3 -m venv",
        )
        .and_then(|()| {
            let mut pip = Command::new(&python);
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
            run(pip.arg("--requirement").arg(&requirements), "pip")
        });
        installed.map_err(|failure| {
            failure.hint(format!(
                "on a machine that can install them, or by hand: a Python with {} is used with --python FILE; \
                 networks that tools/{} made elsewhere are used if they are in the scratch directory",
                PACKAGES.join(", "),
                tool.name
            ))
        })?;
        Ok(python)
    }

    fn write_tool(&self, tool: Tool) -> Result<PathBuf, Failure> {
        for (name, text) in MODULES {
            self.write_file(name, text)?;
        }
        self.write_file(tool.name, tool.text)
    }

    /// Writes a file beside the virtual environment. Returns its path.
    fn write_file(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        make_directory(&self.directory)?;
        let path = self.directory.join(name);
        fs::write(&path, text)
            .map_err(|error| Failure::could_not(format!("cannot write {}: {error}", path.display())))?;
        Ok(path)
    }
}

/// The directory, beside the networks, in which a tool writes. It is removed with everything that is still in it.
struct WorkDirectory(PathBuf);

impl WorkDirectory {
    /// Its name. Regatta takes no file below such a name for a network.
    const NAME: &str = ".exporting";

    /// Creates it, without the files of an export that was killed.
    fn create(into: &Path) -> Result<Self, Failure> {
        let path = into.join(Self::NAME);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Failure::could_not(format!(
                "cannot remove {}: {error}",
                path.display()
            ))),
            _ => make_directory(&path).map(|()| Self(path)),
        }
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        // The next export removes it, too.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Flushes a file that a tool made.
fn sync_exported(path: &Path) -> io::Result<()> {
    let file = regular_file::open(path)?;
    if file.metadata()?.len() == 0 {
        return Err(io::Error::other("the file is empty"));
    }
    file.sync_all()
}

/// Moves all files from one directory to another. Until the last one is there, at least one is missing, so that a mixture of files from two
/// exports never counts as complete.
fn replace(from: &Path, into: &Path, names: &[&Path]) -> io::Result<()> {
    for name in names {
        match fs::remove_file(into.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    sync_directory(into)?;
    for name in names {
        fs::rename(from.join(name), into.join(name))?;
    }
    sync_directory(into)
}

/// Returns the lines of the required packages that the tools import.
fn required_packages() -> Vec<&'static str> {
    let is_imported = |line: &&str| {
        line.split_once("==")
            .is_some_and(|(name, _)| PACKAGES.contains(&name))
    };
    REQUIREMENTS.lines().filter(is_imported).collect()
}

fn has_packages(python: &Path) -> bool {
    executes(python, &format!("import {}", PACKAGES.join(", ")), &[])
}

/// Returns whether a Python has the packages in the required versions.
fn has_required_versions(python: &Path) -> bool {
    let script = "import sys, importlib.metadata as found\n\
                  sys.exit(any(found.version(name) != version for name, version in (line.split('==') for line in sys.argv[1:])))";
    executes(python, script, &required_packages())
}

/// Returns whether a Python executes a script without an error.
fn executes(python: &Path, script: &str, words: &[&str]) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", script]).args(words).stdin(Stdio::null());
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use regatta_catalogue::catalogue::Catalogue;

    use super::*;

    /// Runs the export of rnnt with a Python that runs `tool` in the directory to which it should write. Returns the error.
    fn export(scratch: &Path, tool: &str) -> Option<String> {
        let python = scratch.join("python");
        let text = format!("#!/bin/sh\n[ \"$1\" != -c ] || exit 0\ncd \"$3\"\n{tool}\n");
        fs::write(&python, text).unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        let exporter = Exporter {
            directory: scratch.join("exporters"),
            python: Some(&python),
        };
        let catalogue = Catalogue::read(None).unwrap();
        let benchmark = catalogue.benchmark("rnnt").unwrap();
        let exported = exporter.export(benchmark, &scratch.join("rnnt.pt"), scratch);
        exported.err().map(|failure| failure.to_string())
    }

    fn networks(scratch: &Path) -> Vec<(String, String)> {
        let entries = fs::read_dir(scratch.join("models/rnnt")).unwrap();
        let mut found: Vec<_> = entries
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, fs::read_to_string(path).unwrap())
            })
            .collect();
        found.sort();
        found
    }

    #[test]
    fn networks_of_an_interrupted_export_do_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let scratch = directory.path();
        let write =
            |content: &str| format!("for n in encoder prediction joint; do echo {content} > $n.onnx; done");
        let complete = |content: &str| {
            ["encoder", "joint", "prediction"].map(|name| (format!("{name}.onnx"), format!("{content}\n")))
        };
        for (tool, reason) in [
            ("echo one > encoder.onnx; echo no memory >&2; exit 1", "no memory"),
            ("echo one > encoder.onnx", "did not make"),
            (&format!("{}; : > joint.onnx", write("one")), "the file is empty"),
        ] {
            let error = export(scratch, tool).unwrap();
            assert!(error.contains(reason), "{error}");
            assert_eq!(networks(scratch), []);
        }
        // A killed export has left files.
        let killed = scratch.join("models/rnnt").join(WorkDirectory::NAME);
        fs::create_dir(&killed).unwrap();
        fs::write(killed.join("joint.onnx"), "half").unwrap();
        let error = export(scratch, "echo one > encoder.onnx; echo one > prediction.onnx").unwrap();
        assert!(error.contains("joint.onnx"), "{error}");
        assert_eq!(export(scratch, &write("one")), None);
        assert_eq!(networks(scratch), complete("one"));
        // All files are replaced, or none.
        fs::remove_file(scratch.join("models/rnnt/joint.onnx")).unwrap();
        assert!(export(scratch, "echo two > encoder.onnx; exit 1").is_some());
        assert_eq!(
            networks(scratch),
            [&complete("one")[0], &complete("one")[2]].map(Clone::clone)
        );
        assert_eq!(export(scratch, &write("two")), None);
        assert_eq!(networks(scratch), complete("two"));
    }
}
