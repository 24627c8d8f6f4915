//! The benchmarks of a program, by name.

use std::path::{Path, PathBuf};

use regatta_types::benchmark::Benchmark;

use super::config_file::{CatalogueError, ConfigFileKind, read_directory, read_file, unknown};
use crate::known;

/// All benchmarks of a program: the user's own first, then the built-in ones. The first match applies.
#[derive(Debug)]
pub struct BenchmarkCatalogue {
    benchmarks: Vec<Benchmark>,
    /// The user's directory of such files.
    own: Option<PathBuf>,
}

impl BenchmarkCatalogue {
    /// Reads the built-in benchmarks and those of the user's own `configs` directory.
    ///
    /// # Errors
    /// [`CatalogueError`] when a file cannot be read or parsed.
    pub fn read(configs: Option<&Path>) -> Result<Self, CatalogueError> {
        let own = configs.map(|configs| configs.join(ConfigFileKind::Benchmark.directory()));
        let mut benchmarks = match &own {
            Some(own) => read_directory(own, Self::read_file)?,
            None => Vec::new(),
        };
        benchmarks.extend(known::benchmarks()?);
        Ok(Self { benchmarks, own })
    }

    /// Returns the benchmark that a file describes.
    ///
    /// # Errors
    /// [`CatalogueError`] when the file cannot be read or parsed.
    pub fn read_file(path: &Path) -> Result<Benchmark, CatalogueError> {
        read_file(ConfigFileKind::Benchmark, path, Benchmark::from_toml)
    }

    /// Returns the benchmarks by name. The user's own file hides a built-in one of the same name.
    #[must_use]
    pub fn all(&self) -> Vec<&Benchmark> {
        let mut found: Vec<&Benchmark> = Vec::new();
        for benchmark in &self.benchmarks {
            if !found.iter().any(|one| one.name == benchmark.name) {
                found.push(benchmark);
            }
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    /// Returns the benchmark with a name or alias.
    ///
    /// # Errors
    /// [`CatalogueError::Unknown`] with the known names.
    pub fn named(&self, name: &str) -> Result<&Benchmark, CatalogueError> {
        let found = self.benchmarks.iter().find(|benchmark| benchmark.is_called(name));
        found.ok_or_else(|| {
            let names = self.benchmarks.iter().map(|benchmark| benchmark.name.as_str());
            unknown(
                ConfigFileKind::Benchmark,
                name,
                names.collect(),
                self.own.as_deref(),
            )
        })
    }
}
