//! The configuration files that a catalogue reads, their kinds, and the errors of names and files. It selects none.

use std::{
    error::Error,
    fmt, fs, io,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regatta_types::{Scenario, documents::EngineKind};

use crate::known::KnownFileError;

/// The kinds of configuration files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigFileKind {
    /// A benchmark (`configs/benchmarks`).
    Benchmark,
    /// A round (`configs/rounds`).
    Round,
    /// A system (`configs/systems`).
    System,
}

impl ConfigFileKind {
    /// Returns the directory of such files below `configs`.
    #[must_use]
    pub const fn directory(self) -> &'static str {
        match self {
            Self::Benchmark => "benchmarks",
            Self::Round => "rounds",
            Self::System => "systems",
        }
    }
}

/// Formats as `benchmark`, `round` or `system`.
impl fmt::Display for ConfigFileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Benchmark => "benchmark",
            Self::Round => "round",
            Self::System => "system",
        })
    }
}

/// The error for a name that is unknown, or a file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// No file has this name.
    #[error("unknown {kind} `{name}`; known are {known}")]
    Unknown {
        kind: ConfigFileKind,
        /// The requested name.
        name: String,
        /// The known names, and what else the user may write.
        known: String,
    },
    /// The benchmark has no samples for LoadGen.
    #[error("{name} is measured by the client of the endpoints harness, and LoadGen does not run it")]
    OfEndpoints {
        /// The benchmark.
        name: String,
    },
    /// The named system has no values for a run.
    #[error("{file} has nothing for {benchmark} {scenario} on {engine}")]
    NothingForRun {
        file: String,
        benchmark: String,
        scenario: Scenario,
        engine: EngineKind,
    },
    /// A file cannot be parsed.
    #[error("{} is not a valid {kind} file", .path.display())]
    File {
        kind: ConfigFileKind,
        /// The file.
        path: PathBuf,
        /// The parser's error, with its position.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A file or directory cannot be read.
    #[error("cannot read {}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A built-in file cannot be parsed.
    #[error(transparent)]
    BuiltIn(#[from] KnownFileError),
}

/// The error for an unknown name. `own` is the user's directory of such files.
pub(super) fn unknown(
    kind: ConfigFileKind,
    name: &str,
    mut names: Vec<&str>,
    own: Option<&Path>,
) -> CatalogueError {
    names.sort_unstable();
    names.dedup();
    let mut known = names.join(", ");
    if let Some(own) = own {
        known.push_str(&format!(", and files in {} add to them", own.display()));
    }
    CatalogueError::Unknown {
        kind,
        name: name.to_owned(),
        known,
    }
}

/// Reads and parses one file.
pub(super) fn read_file<T, E: Into<Box<dyn Error + Send + Sync>>>(
    kind: ConfigFileKind,
    path: &Path,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, CatalogueError> {
    let text = regular_file::read_text(path).map_err(|source| CatalogueError::Io {
        path: path.to_owned(),
        source,
    })?;
    parse(&text).map_err(|source| CatalogueError::File {
        kind,
        path: path.to_owned(),
        source: source.into(),
    })
}

/// Reads the `.toml` files of a directory in the order of their names. Reads none when the directory does not exist.
pub(super) fn read_directory<T>(
    directory: &Path,
    read: impl Fn(&Path) -> Result<T, CatalogueError>,
) -> Result<Vec<T>, CatalogueError> {
    let listed: io::Result<Vec<PathBuf>> = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect()),
    };
    let mut paths = listed.map_err(|source| CatalogueError::Io {
        path: directory.to_owned(),
        source,
    })?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}
