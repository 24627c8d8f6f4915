//! The simplest sample library: its samples are in memory from the start, or it needs none.

use super::{QuerySampleIndex, QuerySampleLibrary, SutError};

/// A library that only counts samples. They are already in memory, or are computed from their index.
#[derive(Debug, Clone)]
pub struct ResidentLibrary {
    name: String,
    total: usize,
    performance: usize,
}

impl ResidentLibrary {
    /// Creates a library of `total` samples, all of which may be used in a measurement.
    #[must_use]
    pub fn new(name: impl Into<String>, total: usize) -> Self {
        Self {
            name: name.into(),
            total,
            performance: total,
        }
    }

    /// Returns the library with `performance` as the number of samples that fit into memory together.
    #[must_use]
    pub fn with_performance_samples(self, performance: usize) -> Self {
        Self { performance, ..self }
    }
}

impl QuerySampleLibrary for ResidentLibrary {
    fn name(&self) -> &str {
        &self.name
    }

    fn total_sample_count(&self) -> usize {
        self.total
    }

    fn performance_sample_count(&self) -> usize {
        self.performance
    }

    fn load_samples_to_ram(&self, _: &[QuerySampleIndex]) -> Result<(), SutError> {
        Ok(())
    }

    fn unload_samples_from_ram(&self, _: &[QuerySampleIndex]) -> Result<(), SutError> {
        Ok(())
    }
}
