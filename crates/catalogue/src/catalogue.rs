//! The benchmarks, rounds and systems that a user may name: built-in ones, and the user's own files, which override built-in ones of the
//! same name. The coordinator's own files are in the workspace's `configs`; `regatta-agent` only has the built-in ones.
//!
//! [`BenchmarkCatalogue`] finds benchmarks, [`RoundCatalogue`] rounds and [`SystemCatalogue`] systems. Each reads only its own files.

mod benchmarks;
mod config_file;
mod rounds;
mod systems;

use std::path::Path;

use regatta_types::benchmark::Benchmark;

pub use self::{
    benchmarks::BenchmarkCatalogue,
    config_file::{CatalogueError, ConfigFileKind},
    rounds::RoundCatalogue,
    systems::SystemCatalogue,
};
use crate::round::Round;

/// The benchmarks, rounds and systems of a program.
#[derive(Debug)]
pub struct Catalogue {
    benchmarks: BenchmarkCatalogue,
    rounds: RoundCatalogue,
    systems: SystemCatalogue,
}

impl Catalogue {
    /// Reads the built-in files and those of the user's own `configs` directory.
    ///
    /// # Errors
    /// [`CatalogueError`] when a file cannot be read or parsed.
    pub fn read(configs: Option<&Path>) -> Result<Self, CatalogueError> {
        Ok(Self {
            benchmarks: BenchmarkCatalogue::read(configs)?,
            rounds: RoundCatalogue::read(configs)?,
            systems: SystemCatalogue::read(configs)?,
        })
    }

    /// Returns the systems: how boards run benchmarks.
    #[must_use]
    pub const fn systems(&self) -> &SystemCatalogue {
        &self.systems
    }

    /// Returns every benchmark, by name.
    pub fn benchmarks(&self) -> Vec<&Benchmark> {
        self.benchmarks.all()
    }

    /// Returns the benchmark with a name or alias.
    ///
    /// # Errors
    /// [`CatalogueError::Unknown`] with the known names, or [`CatalogueError::OfEndpoints`].
    pub fn benchmark(&self, name: &str) -> Result<&Benchmark, CatalogueError> {
        self.benchmarks.named(name).map_err(|error| {
            let mut rounds = self.rounds.all().unwrap_or_default().into_iter();
            if rounds.any(|round| round.prescribed_endpoints_run(name).is_some()) {
                CatalogueError::OfEndpoints {
                    name: name.to_owned(),
                }
            } else {
                error
            }
        })
    }

    /// Returns the round with a name, in any case. Without a name, returns the newest built-in one.
    ///
    /// # Errors
    /// [`CatalogueError::Unknown`] with the known names.
    pub fn round(&self, name: Option<&str>) -> Result<&Round, CatalogueError> {
        self.rounds.named(name)
    }
}
