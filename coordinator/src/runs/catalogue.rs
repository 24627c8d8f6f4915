//! The benchmarks, rounds and systems that a user may name: built-in ones and the workspace's own files. A workspace file overrides a
//! built-in one of the same name.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regatta_config::{
    known::{self, KnownFileError},
    round::Round,
    system::{SystemCatalogue, SystemChoiceError},
};
use regatta_fsutil::regular_file;
use regatta_types::benchmark::Benchmark;

use crate::workspace::Workspace;

/// A name that is unknown, or a file that cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CatalogueError {
    /// The benchmark or round is unknown.
    #[error(
        "unknown {kind} `{name}`; known are {known}, and a workspace's files in configs/{kind}s add to them"
    )]
    Unknown {
        /// `benchmark` or `round`.
        kind: &'static str,
        /// The requested name.
        name: String,
        /// The known names.
        known: String,
    },
    /// A file of the workspace cannot be parsed.
    #[error("{} is not a valid {kind} file", .path.display())]
    File {
        /// `benchmark` or `round`.
        kind: &'static str,
        /// The file.
        path: PathBuf,
        /// The parser's error, with its position.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A file or directory of the workspace cannot be read.
    #[error("cannot read {}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A system's file cannot be used.
    #[error(transparent)]
    Systems(#[from] SystemChoiceError),
    /// A built-in file cannot be parsed.
    #[error(transparent)]
    BuiltIn(#[from] KnownFileError),
}

/// The known benchmarks, rounds and systems.
#[derive(Debug)]
pub(crate) struct Catalogue {
    benchmarks: Vec<Benchmark>,
    rounds: Rounds,
    systems: SystemCatalogue,
}

impl Catalogue {
    /// Reads the built-in files and a workspace's own files.
    ///
    /// # Errors
    /// Returns [`CatalogueError`] when a file cannot be read or parsed.
    pub(crate) fn read(workspace: Option<&Workspace>) -> Result<Self, CatalogueError> {
        let mut benchmarks = Vec::new();
        if let Some(workspace) = workspace {
            benchmarks = read_files(
                "benchmark",
                &workspace.configs("benchmarks"),
                Benchmark::from_toml,
            )?;
        }
        // The first match wins, so the workspace's files come first.
        benchmarks.extend(known::benchmarks()?);
        let rounds = Rounds::read(workspace)?;
        let own = workspace.map(|workspace| workspace.configs("systems"));
        let systems = SystemCatalogue::read(own.as_deref())?;
        Ok(Self {
            benchmarks,
            rounds,
            systems,
        })
    }

    /// The system files: how boards run benchmarks.
    pub(crate) const fn systems(&self) -> &SystemCatalogue {
        &self.systems
    }

    /// Returns the benchmark with a name or alias.
    ///
    /// # Errors
    /// Returns [`CatalogueError::Unknown`] with the known names.
    pub(crate) fn benchmark(&self, name: &str) -> Result<&Benchmark, CatalogueError> {
        self.benchmarks
            .iter()
            .find(|benchmark| benchmark.is_called(name))
            .ok_or_else(|| CatalogueError::Unknown {
                kind: "benchmark",
                name: name.to_owned(),
                known: listed(self.benchmarks.iter().map(|benchmark| benchmark.name.as_str())),
            })
    }

    /// Returns the round with a name, in any case. Without a name, returns the newest.
    ///
    /// # Errors
    /// Returns [`CatalogueError::Unknown`] with the known names.
    pub(crate) fn round(&self, name: Option<&str>) -> Result<&Round, CatalogueError> {
        self.rounds.named(name)
    }
}

/// The known rounds. Of the built-in rounds, only the requested one is parsed, because parsing all takes longer than a check.
#[derive(Debug)]
pub(crate) struct Rounds {
    /// The workspace's rounds.
    own: Vec<Round>,
}

impl Rounds {
    /// Reads a workspace's own rounds.
    ///
    /// # Errors
    /// Returns [`CatalogueError`] when a file of the workspace cannot be read or parsed.
    pub(crate) fn read(workspace: Option<&Workspace>) -> Result<Self, CatalogueError> {
        let own = match workspace {
            Some(workspace) => read_files("round", &workspace.configs("rounds"), Round::from_toml)?,
            None => Vec::new(),
        };
        Ok(Self { own })
    }

    /// Returns the round with a name. Without a name, returns the newest built-in one.
    ///
    /// # Errors
    /// Returns [`CatalogueError::Unknown`] with the known names.
    pub(crate) fn named(&self, name: Option<&str>) -> Result<&Round, CatalogueError> {
        let own = name.and_then(|name| {
            self.own
                .iter()
                .find(|round| round.name.eq_ignore_ascii_case(name))
        });
        let name = name
            .or_else(|| known::round_names().next_back())
            .unwrap_or_default();
        let found = match own {
            None => known::round(name)?,
            own => own,
        };
        found.ok_or_else(|| {
            let mut names: Vec<&str> = known::round_names().collect();
            names.extend(self.own.iter().map(|round| round.name.as_str()));
            CatalogueError::Unknown {
                kind: "round",
                name: name.to_owned(),
                known: listed(names.into_iter()),
            }
        })
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

fn read_files<T>(
    kind: &'static str,
    directory: &Path,
    parse: impl Fn(&str) -> Result<T, toml::de::Error>,
) -> Result<Vec<T>, CatalogueError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| CatalogueError::Io { path, source }
    };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(io(directory))?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(io(directory))?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let mut found = Vec::with_capacity(paths.len());
    for path in paths {
        let text = regular_file::read_text(&path).map_err(io(&path))?;
        let read = parse(&text);
        found.push(read.map_err(|source| CatalogueError::File {
            kind,
            path,
            source: Box::new(source),
        })?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_benchmark_is_answered_with_the_known_ones() {
        let catalogue = Catalogue::read(None).unwrap();
        let error = catalogue.benchmark("digitz").unwrap_err().to_string();
        assert!(error.contains("`digitz`") && error.contains("digits"), "{error}");
        let error = catalogue.round(Some("v0.1")).unwrap_err().to_string();
        assert!(error.contains("v6.1"), "{error}");
    }

    #[test]
    fn a_workspaces_file_wins_and_a_broken_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(dir.path(), "schema = 1\n").unwrap();
        let own = workspace.configs("benchmarks");
        fs::create_dir_all(&own).unwrap();
        let built_in = toml_of_digits();
        fs::write(
            own.join("digits.toml"),
            built_in.replace("total_samples = 597", "total_samples = 7"),
        )
        .unwrap();
        let catalogue = Catalogue::read(Some(&workspace)).unwrap();
        assert_eq!(catalogue.benchmark("digits").unwrap().dataset.total_samples, 7);

        fs::write(own.join("broken.toml"), "schema = ").unwrap();
        let error = Catalogue::read(Some(&workspace)).unwrap_err().to_string();
        assert!(error.contains("broken.toml"), "{error}");
    }

    fn toml_of_digits() -> &'static str {
        include_str!("../../../configs/benchmarks/digits.toml")
    }
}
