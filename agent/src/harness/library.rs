//! The QSL: samples of the benchmark as LoadGen loads them into memory, or merely counted for engines that look at none.
//!
//! A loadable set lies in one arena in LoadGen's own order, so that a MultiStream query is one contiguous batch. Loading
//! takes the write lock, computing the read lock; LoadGen never does both at once.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use regatta_loadgen::sut::{QuerySampleIndex, QuerySampleLibrary, SutError};
use regatta_rules::benchmark::{Benchmark, Model};

use super::{
    arena::Arena,
    fault::FirstFault,
    map_file::{MapFileError, read_sample_names},
    npy::{SampleError, read_sample},
};
use crate::engines::tensorrt::SharedSamples;

/// A dataset that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LibraryError {
    /// The map file does not do.
    #[error("the dataset of {benchmark} cannot be used")]
    Map {
        /// The benchmark.
        benchmark: String,
        /// Why.
        #[source]
        source: MapFileError,
    },
    /// A sample is missing.
    #[error("the dataset of {benchmark} cannot be used")]
    Sample {
        /// The benchmark.
        benchmark: String,
        /// Which, and why.
        #[source]
        source: SampleError,
    },
    /// The description contradicts itself.
    #[error("the description of {benchmark} cannot be used: {problem}")]
    Description {
        /// The benchmark.
        benchmark: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The samples do not fit into memory.
    #[error("{samples} samples of {sample_bytes} bytes do not fit into memory; lower performance_samples")]
    Memory {
        /// Samples to be loaded together.
        samples: usize,
        /// Bytes of each.
        sample_bytes: usize,
    },
}

/// The dataset of a run.
pub(crate) struct Library {
    name: String,
    total: usize,
    performance: usize,
    /// `None` where the engine looks at no data.
    data: Option<NpyData>,
    fault: FirstFault,
}

/// Samples as `.npy` files, and those of them that are loaded.
struct NpyData {
    benchmark: String,
    files: Vec<PathBuf>,
    model: Model,
    sample_bytes: usize,
    loaded: RwLock<Arena>,
}

impl Library {
    /// A dataset that is counted only.
    pub(crate) fn counted(benchmark: &Benchmark, fault: FirstFault) -> Self {
        let dataset = &benchmark.dataset;
        Self {
            name: benchmark.name.clone(),
            total: dataset.total_samples,
            performance: dataset.performance_samples,
            data: None,
            fault,
        }
    }

    /// The benchmark's dataset below `scratch`. Sees to it that every sample's file is there; loads none.
    ///
    /// # Errors
    /// [`LibraryError`] when the description, the map file or a sample's file does not do.
    pub(crate) fn open(
        benchmark: &Benchmark,
        scratch: &Path,
        fault: FirstFault,
    ) -> Result<Self, LibraryError> {
        let (dataset, name) = (&benchmark.dataset, || benchmark.name.clone());
        let sample_bytes = sample_bytes(benchmark)?;
        let names =
            read_sample_names(&scratch.join(&dataset.map), dataset.total_samples).map_err(|source| {
                LibraryError::Map {
                    benchmark: name(),
                    source,
                }
            })?;
        let directory = scratch.join(&dataset.dir);
        let files: Vec<_> = names
            .iter()
            .map(|name| directory.join(format!("{name}.npy")))
            .collect();
        for file in &files {
            check_present(file, sample_bytes).map_err(|source| LibraryError::Sample {
                benchmark: name(),
                source,
            })?;
        }
        let loaded = RwLock::new(Arena::new(files.len(), sample_bytes));
        let data = NpyData {
            benchmark: name(),
            files,
            model: benchmark.model.clone(),
            sample_bytes,
            loaded,
        };
        Ok(Self {
            data: Some(data),
            ..Self::counted(benchmark, fault)
        })
    }

    /// Has the samples loaded into memory that the engine shares.
    pub(crate) fn share(&mut self, shared: Arc<SharedSamples>) {
        if let Some(data) = &mut self.data {
            let arena = data.loaded.get_mut().unwrap_or_else(PoisonError::into_inner);
            arena.share(shared);
        }
    }

    /// Bytes of a sample; 0 where the samples are counted only.
    pub(crate) fn sample_bytes(&self) -> usize {
        self.data.as_ref().map_or(0, |data| data.sample_bytes)
    }

    /// The loaded samples, which stay loaded while the guard lives; `None` where they are counted only.
    pub(crate) fn loaded(&self) -> Option<RwLockReadGuard<'_, Arena>> {
        self.data
            .as_ref()
            .map(|data| data.loaded.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Bytes of a sample, after the checks that everything else relies on.
fn sample_bytes(benchmark: &Benchmark) -> Result<usize, LibraryError> {
    let fault = |problem| LibraryError::Description {
        benchmark: benchmark.name.clone(),
        problem,
    };
    let (model, dataset) = (&benchmark.model, &benchmark.dataset);
    if dataset.performance_samples == 0 || dataset.performance_samples > dataset.total_samples {
        return Err(fault("performance_samples must be from 1 to total_samples"));
    }
    let bytes = model
        .input_shape
        .iter()
        .try_fold(model.input_dtype.size(), |bytes, dim| bytes.checked_mul(*dim));
    bytes
        .filter(|&bytes| bytes > 0)
        .ok_or_else(|| fault("input_shape holds no sample"))
}

/// A cheap look before the run, so that a missing or cut file is told before LoadGen begins.
fn check_present(file: &Path, sample_bytes: usize) -> Result<(), SampleError> {
    let found = file
        .metadata()
        .map_err(|source| SampleError::Unreadable {
            path: file.to_owned(),
            source,
        })?
        .len();
    if found > sample_bytes as u64 {
        return Ok(());
    }
    let found = format!("fewer than {sample_bytes} bytes");
    Err(SampleError::Length {
        path: file.to_owned(),
        found,
        expected: sample_bytes,
    })
}

impl NpyData {
    /// Replaces what is loaded.
    fn load(&self, samples: &[QuerySampleIndex]) -> Result<(), LibraryError> {
        let mut arena = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        let room = arena.make_room(samples.len()).ok_or(LibraryError::Memory {
            samples: samples.len(),
            sample_bytes: self.sample_bytes,
        })?;
        for (place, &index) in room.chunks_exact_mut(self.sample_bytes).zip(samples) {
            let file = self.files.get(index).ok_or_else(|| LibraryError::Description {
                benchmark: self.benchmark.clone(),
                problem: "LoadGen asks for a sample behind the last one",
            })?;
            read_sample(file, &self.model, place).map_err(|source| LibraryError::Sample {
                benchmark: self.benchmark.clone(),
                source,
            })?;
        }
        arena.fill(samples);
        Ok(())
    }
}

impl QuerySampleLibrary for Library {
    fn name(&self) -> &str {
        &self.name
    }

    fn total_sample_count(&self) -> usize {
        self.total
    }

    fn performance_sample_count(&self) -> usize {
        self.performance
    }

    fn load_samples_to_ram(&self, samples: &[QuerySampleIndex]) -> Result<(), SutError> {
        let loaded = self.data.as_ref().map_or(Ok(()), |data| data.load(samples));
        loaded.map_err(|error| self.fault.remember(error))
    }

    fn unload_samples_from_ram(&self, _samples: &[QuerySampleIndex]) -> Result<(), SutError> {
        if let Some(data) = &self.data {
            data.loaded
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
        Ok(())
    }
}
