//! The common part of commands: the workspace, the output format, and printing.

use std::{
    fs,
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use clap::{
    ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use regatta_terminal::fit;
use regatta_text::{escape_json, escape_lines, quote_for_shell_if_needed};
use serde::Serialize;

use super::{
    colours, with_hint,
    workspace_search::{WorkspaceSearch, search},
};
use crate::{exit::Failure, suggested_commands::complete};
use regatta_lab_runs::expect_runs_in_store;
use regatta_lab_store::{
    Store,
    workspace::{CONFIG_FILE, Workspace, WorkspaceError},
};

const CURRENT: &str = ".";

/// The variable that names the workspace.
pub(super) const WORKSPACE_VARIABLE: &str = "REGATTA_WORKSPACE";

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people
    Text,
    /// One JSON document for programs
    Json,
    /// CSV for spreadsheets
    Csv,
    /// A self-contained HTML page
    Html,
}

/// Returns the parser of the formats that all commands support. A command with more formats declares its own `--format`, which replaces the global
/// one.
pub(super) fn text_or_json() -> impl TypedValueParser<Value = Format> {
    formats(["text", "json"])
}

/// Returns the parser of the formats of a command whose result is a table.
pub(super) fn text_json_or_csv() -> impl TypedValueParser<Value = Format> {
    formats(["text", "json", "csv"])
}

fn formats<const N: usize>(words: [&'static str; N]) -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(words).map(|word| match word.as_str() {
        "json" => Format::Json,
        "csv" => Format::Csv,
        _ => Format::Text,
    })
}

/// The global flags.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// The workspace's directory.
    pub(crate) workspace: PathBuf,
    choice: WorkspaceChoice,
    /// The format of results.
    pub(crate) format: Format,
}

/// How a command's workspace was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkspaceChoice {
    /// The user named it.
    Named,
    /// The search found it.
    Found,
    /// It is the current directory, because no workspace was found.
    Current,
}

impl Context {
    /// Uses the workspace that the user named, or searches for one.
    pub(crate) fn new(named: Option<PathBuf>, format: Format) -> Self {
        let (workspace, choice) = match named {
            Some(named) => (named, WorkspaceChoice::Named),
            None => match search(Path::new(CURRENT)) {
                WorkspaceSearch::Found(found) => (found, WorkspaceChoice::Found),
                _ => (PathBuf::from(CURRENT), WorkspaceChoice::Current),
            },
        };
        Self {
            workspace,
            choice,
            format,
        }
    }

    /// Returns the same context with another format.
    pub(super) fn in_format(&self, format: Format) -> Self {
        Self {
            format,
            ..self.clone()
        }
    }

    /// Returns the workspace that the user named.
    pub(super) fn named_workspace(&self) -> Option<&Path> {
        (self.choice == WorkspaceChoice::Named).then_some(&self.workspace)
    }

    /// Returns the context of the next command for the workspace in `directory`, which is only named if a search would not find it.
    pub(super) fn in_workspace(&self, directory: &Path) -> Self {
        let found = Self::new(None, self.format);
        let same = |path: &Path| fs::canonicalize(path).ok();
        if self.choice != WorkspaceChoice::Named && same(&found.workspace) == same(directory) {
            return found;
        }
        Self {
            workspace: directory.to_owned(),
            choice: WorkspaceChoice::Named,
            format: self.format,
        }
    }

    /// Returns a command of this program in this workspace, as it can be pasted into a shell.
    pub(crate) fn command(&self, words: &str) -> String {
        match self.workspace_option() {
            None => format!("regatta {words}"),
            Some(option) => format!("regatta {words} {option}"),
        }
    }

    /// Returns the option that names this workspace, unless every command uses it anyway.
    fn workspace_option(&self) -> Option<String> {
        let is_default = self.choice != WorkspaceChoice::Named
            || self.workspace == Path::new(CURRENT)
            || std::env::var_os(WORKSPACE_VARIABLE).is_some_and(|set| *set == *self.workspace.as_os_str());
        let named = || quote_for_shell_if_needed(&self.workspace.to_string_lossy()).into_owned();
        (!is_default).then(|| format!("--workspace {}", named()))
    }

    /// Adds this workspace to the commands that a failure suggests.
    pub(super) fn complete(&self, failure: Failure) -> Failure {
        match self.workspace_option() {
            None => failure,
            Some(option) => failure.with_workspace_option(option),
        }
    }

    /// Opens the workspace that was named.
    pub(crate) fn open(&self) -> Result<Workspace, Failure> {
        Workspace::open(&self.workspace).map_err(|error| {
            let is_none = matches!(error, WorkspaceError::NotOne(_));
            match self.several_workspaces().filter(|_| is_none) {
                Some(several) => Failure::usage(error).hint(format!(
                    "there are several below it ({several}): name one with --workspace DIR or REGATTA_WORKSPACE"
                )),
                None => failure(error),
            }
        })
    }

    /// Opens the workspace and its store, which knows the workspace's runs.
    pub(crate) fn open_store(&self) -> Result<(Workspace, Store), Failure> {
        let workspace = self.open()?;
        let store = workspace.store()?;
        expect_runs_in_store(&workspace, &store).map_err(|error| with_hint(error, &workspace))?;
        Ok((workspace, store))
    }

    /// Returns the workspace, if the directory is one: for commands that do not need one and respect its own files.
    pub(crate) fn open_if_there(&self) -> Result<Option<Workspace>, Failure> {
        match Workspace::open(&self.workspace) {
            Ok(workspace) => Ok(Some(workspace)),
            Err(WorkspaceError::NotOne(_)) => {
                self.warn_of_ignored_files();
                Ok(None)
            }
            Err(error) => Err(failure(error)),
        }
    }

    /// Lists the workspaces directly below the current directory, if there are several and the user did not name one.
    fn several_workspaces(&self) -> Option<String> {
        if self.choice != WorkspaceChoice::Current {
            return None;
        }
        let WorkspaceSearch::Several(paths) = search(&self.workspace) else {
            return None;
        };
        let names: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
        Some(names.join(", "))
    }

    /// Warns of files in `configs` of a directory that is not a workspace: only a workspace's count.
    fn warn_of_ignored_files(&self) {
        if let Some(several) = self.several_workspaces() {
            tracing::warn!(
                "none of the workspaces here is used: {several}; hint: name one with --workspace DIR"
            );
        }
        let directories = ["benchmarks", "rounds", "systems"];
        let paths = directories.map(|name| self.workspace.join("configs").join(name));
        let ignored: Vec<_> = paths.iter().filter(|path| path.is_dir()).collect();
        if let Some(first) = ignored.first() {
            let init = self.command("init");
            tracing::warn!(
                "{} is ignored: {} is not a workspace (it has no {CONFIG_FILE}); hint: `{init}`",
                first.display(),
                self.workspace.display()
            );
        }
    }

    /// Prints a result: a document for programs, or `text` for people. Commands that the text suggests get this workspace.
    pub(crate) fn print(&self, document: &impl Serialize, text: impl FnOnce() -> String) -> io::Result<()> {
        match self.format {
            Format::Json => print(&escape_json(&serde_json::to_string_pretty(document)?)),
            Format::Text | Format::Csv | Format::Html => match self.workspace_option() {
                None => say(&text()),
                Some(option) => say(&complete(&text(), &option)),
            },
        }
    }

    /// Returns whether progress may be drawn on the terminal.
    pub(crate) fn is_lively(&self) -> bool {
        io::stderr().is_terminal() && !is_quiet()
    }
}

fn failure(error: WorkspaceError) -> Failure {
    let hint = matches!(error, WorkspaceError::NotOne(_)).then_some(
        "name one with --workspace DIR or REGATTA_WORKSPACE, make one with `regatta init DIR`, or try `regatta quickstart`",
    );
    Failure::of_kind(error.kind(), error).optional_hint(hint)
}

/// Prints text for people to standard output, wrapped to a terminal. What would control the terminal is escaped.
pub(crate) fn say(text: &str) -> io::Result<()> {
    let escaped = escape_lines(text);
    let text = fit(&escaped, &io::stdout());
    if colours::are_enabled() {
        print(&colours::paint(&text))
    } else {
        print(&text)
    }
}

/// Prints a document to standard output unchanged. A closed pipe (`| head`) is not an error.
pub(super) fn print(text: &str) -> io::Result<()> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Whether the command line has `--quiet`.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Switches off [`tell`] and progress for the rest of the process.
pub(super) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

pub(super) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints progress, not results, to standard error, unless `--quiet` was given.
pub(crate) fn tell(text: &str) {
    if !is_quiet() {
        notify(text);
    }
}

/// Prints a question, a warning or the reason of a refusal to standard error, also with `--quiet`.
pub(crate) fn notify(text: &str) {
    // The text is lost when standard error is closed.
    let _ = writeln!(io::stderr(), "{}", fit(&escape_lines(text), &io::stderr()));
}
