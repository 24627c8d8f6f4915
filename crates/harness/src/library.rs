//! The QSL: the benchmark's samples, loaded into memory as LoadGen requests, or only counted for engines that do not
//! read them.
//!
//! A loadable set is in one arena in LoadGen's order, so a MultiStream query is one contiguous batch. Loading takes the
//! write lock and computing the read lock. LoadGen never does both at once.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use regatta_engines::{SequenceBuckets, tensorrt::SharedSamples};
use regatta_fsutil::regular_file::{self, MAX_TEXT};
use regatta_loadgen::sut::{QuerySampleIndex, QuerySampleLibrary, SutError};
use regatta_types::engine_settings::SequenceLengths;
use regatta_types::{
    benchmark::{Benchmark, Detections, Model},
    documents::{Document as _, DocumentError},
    samples::{Form, NotWhole, OtherSamples, SampleSet},
};

use super::{
    arena::{Arena, SampleSizes},
    array_set::ArraySet,
    fault::FirstFault,
    map_file::{MapFileError, read_image_sizes, read_sample_names},
    npy::{SampleError, read_sample},
    sequences::{SequenceError, read_buckets},
    volumes::read_volumes,
    waveforms::check_lengths,
};

/// Why a dataset cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The map file is not valid.
    #[error("the dataset of {benchmark} cannot be used")]
    Map {
        benchmark: String,
        /// The cause.
        #[source]
        source: MapFileError,
    },
    /// A sample is missing or not valid.
    #[error("the dataset of {benchmark} cannot be used")]
    Sample {
        benchmark: String,
        /// The cause, which names the file.
        #[source]
        source: SampleError,
    },
    /// The directory of the samples does not exist.
    #[error("there are no samples of {benchmark} as {form} in {}; hint: `{command}` prepares them", directory.display())]
    NotPrepared {
        benchmark: String,
        /// Type and layout of the samples.
        form: Form,
        /// The expected directory.
        directory: PathBuf,
        /// The command that creates the samples.
        command: String,
    },
    /// The preparation of the samples was interrupted or is still in progress.
    #[error(transparent)]
    NotWhole(#[from] NotWhole),
    /// The samples have another type, layout or shape.
    #[error("the samples in {} cannot be used for {benchmark}", directory.display())]
    OtherSamples {
        benchmark: String,
        /// The directory of the samples.
        directory: PathBuf,
        /// The actual and the expected form.
        #[source]
        source: OtherSamples,
    },
    /// The document beside the samples does not parse.
    #[error("{} does not describe the samples in its directory; hint: `{command}` prepares them again", path.display())]
    Document {
        /// The document.
        path: PathBuf,
        /// The command that creates the samples again.
        command: String,
        /// The cause.
        #[source]
        source: DocumentError,
    },
    /// The document beside the samples cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The document.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The benchmark's description is inconsistent.
    #[error("the description of {benchmark} cannot be used: {problem}")]
    Description {
        benchmark: String,
        problem: &'static str,
    },
    /// The requested lengths of sequences cannot be used.
    #[error(transparent)]
    Sequences(#[from] SequenceError),
    /// The samples do not fit into memory.
    #[error("{samples} samples of {sample_bytes} bytes do not fit into memory; lower performance_samples")]
    Memory {
        /// Number of samples to load together.
        samples: usize,
        /// Bytes of each sample.
        sample_bytes: usize,
    },
}

/// The dataset of a run.
pub(crate) struct Library {
    name: String,
    total: usize,
    performance: usize,
    /// `None` if the engine does not read samples.
    data: Option<NpyData>,
    /// The lengths of sequences, and each sample's.
    sequences: Arc<SequenceBuckets>,
    fault: FirstFault,
}

/// Samples in `.npy` files, and the loaded ones.
struct NpyData {
    benchmark: String,
    files: Files,
    model: Model,
    sizes: SampleSizes,
    /// The voxels of each sample, when they differ; else empty.
    volumes: Arc<[[usize; 3]]>,
    loaded: RwLock<Arena>,
}

/// The file layout of samples.
enum Files {
    /// One file per sample.
    OneEach(Vec<PathBuf>),
    /// One file per input, with all samples.
    PerInput(ArraySet),
}

impl Library {
    /// Returns a dataset that is only counted.
    pub(crate) fn counted(benchmark: &Benchmark, fault: FirstFault) -> Self {
        let dataset = &benchmark.dataset;
        Self {
            name: benchmark.name.clone(),
            total: dataset.total_samples,
            performance: dataset.performance_samples,
            data: None,
            sequences: Arc::default(),
            fault,
        }
    }

    /// Opens the benchmark's dataset below `scratch`. Checks that all sample files exist, without loading any.
    ///
    /// # Errors
    /// [`LibraryError`] when the description, the map file or a sample file is not valid.
    pub(crate) fn open(
        benchmark: &Benchmark,
        scratch: &Path,
        fault: FirstFault,
    ) -> Result<Self, LibraryError> {
        let (dataset, model) = (&benchmark.dataset, &benchmark.model);
        let sample_bytes = sample_bytes(benchmark)?;
        let directory = scratch.join(&dataset.dir);
        check_document(benchmark, &directory)?;
        let files = if model.further_inputs.is_empty() {
            Files::OneEach(sample_files(benchmark, scratch, &directory, sample_bytes)?)
        } else {
            let arrays = ArraySet::open(&directory, model, dataset.total_samples)
                .and_then(|arrays| check_lengths(model, &arrays).map(|()| arrays));
            Files::PerInput(arrays.map_err(|source| LibraryError::Sample {
                benchmark: benchmark.name.clone(),
                source,
            })?)
        };
        let volumes = match (&files, &model.windows) {
            (Files::OneEach(files), Some(windows)) => {
                read_volumes(files, model, windows).map_err(|source| LibraryError::Sample {
                    benchmark: benchmark.name.clone(),
                    source,
                })?
            }
            _ => Arc::default(),
        };
        let sizes = if volumes.is_empty() {
            SampleSizes::Equal(sample_bytes)
        } else {
            let voxel = model.input_shape[0] * model.input_dtype.size();
            let bytes = |volume: &[usize; 3]| volume.iter().product::<usize>() * voxel;
            SampleSizes::Each(volumes.iter().map(bytes).collect())
        };
        let loaded = RwLock::new(Arena::new(dataset.total_samples, sizes.clone()));
        let data = NpyData {
            benchmark: benchmark.name.clone(),
            files,
            model: model.clone(),
            sizes,
            volumes,
            loaded,
        };
        Ok(Self {
            data: Some(data),
            ..Self::counted(benchmark, fault)
        })
    }

    /// Returns the bytes of the largest sample. 0 if samples are only counted.
    pub(crate) fn sample_bytes(&self) -> usize {
        self.data.as_ref().map_or(0, |data| data.sizes.largest())
    }

    /// Returns the voxels of each sample along each dimension, when they differ; else nothing.
    pub(crate) fn volumes(&self) -> Arc<[[usize; 3]]> {
        self.data
            .as_ref()
            .map(|data| Arc::clone(&data.volumes))
            .unwrap_or_default()
    }

    /// Sets the lengths at which sequences are computed. Reads the tokens of all samples.
    ///
    /// # Errors
    /// [`LibraryError`] when the benchmark cannot have these lengths.
    pub(crate) fn cut_sequences(
        &mut self,
        benchmark: &Benchmark,
        lengths: Option<&SequenceLengths>,
    ) -> Result<(), LibraryError> {
        let arrays = self.data.as_ref().and_then(|data| match &data.files {
            Files::PerInput(arrays) => Some(arrays),
            Files::OneEach(_) => None,
        });
        self.sequences = Arc::new(read_buckets(benchmark, lengths, arrays)?);
        Ok(())
    }

    /// Returns the lengths at which sequences are computed, and each sample's.
    pub(crate) fn sequences(&self) -> Arc<SequenceBuckets> {
        Arc::clone(&self.sequences)
    }

    /// Returns the samples whose sizes blank samples have: one of each length of sequences, the shortest first. At least one.
    pub(crate) fn blank_samples(&self) -> Vec<QuerySampleIndex> {
        if self.sequences.are_several() {
            return self.sequences.examples();
        }
        vec![self.data.as_ref().map_or(0, |data| data.sizes.smallest_sample())]
    }

    /// Sets the allocator of the memory that the engine shares.
    pub(crate) fn share(&mut self, shared: Arc<SharedSamples>) {
        if let Some(data) = &mut self.data {
            let arena = data.loaded.get_mut().unwrap_or_else(PoisonError::into_inner);
            arena.share(shared);
        }
    }

    /// Allocates `samples` blank samples, until LoadGen loads samples.
    ///
    /// # Errors
    /// [`LibraryError::Memory`].
    pub(crate) fn lend_blank(&self, samples: usize) -> Result<(), LibraryError> {
        let Some(data) = &self.data else {
            return Ok(());
        };
        let mut arena = data.loaded.write().unwrap_or_else(PoisonError::into_inner);
        let blank = vec![data.sizes.smallest_sample(); samples];
        let space = arena.free_space(&blank).ok_or(LibraryError::Memory {
            samples,
            sample_bytes: data.sizes.largest(),
        })?;
        space.fill(0);
        Ok(())
    }

    /// Returns the loaded samples, which stay loaded while the guard exists. `None` if samples are only counted.
    pub(crate) fn loaded(&self) -> Option<RwLockReadGuard<'_, Arena>> {
        self.data
            .as_ref()
            .map(|data| data.loaded.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the bytes of a sample, after checks of the description that other code relies on.
fn sample_bytes(benchmark: &Benchmark) -> Result<usize, LibraryError> {
    let fault = |problem| LibraryError::Description {
        benchmark: benchmark.name.clone(),
        problem,
    };
    let dataset = &benchmark.dataset;
    if dataset.performance_samples == 0 || dataset.performance_samples > dataset.total_samples {
        return Err(fault("performance_samples must be from 1 to total_samples"));
    }
    let bytes = benchmark.model.sample_bytes();
    bytes.ok_or_else(|| fault("input_shape has no elements"))
}

/// Checks that the samples were prepared for this benchmark. A set without a document is only checked by its files.
fn check_document(benchmark: &Benchmark, directory: &Path) -> Result<(), LibraryError> {
    let form = benchmark.form();
    // Only directories with the name of the form come from `prep`. Other directories may contain a user's own samples.
    let is_made = directory.file_name() == Some(form.to_string().as_ref());
    if is_made && !directory.is_dir() {
        return Err(LibraryError::NotPrepared {
            benchmark: benchmark.name.clone(),
            form,
            directory: directory.to_owned(),
            command: form.prep_command(&benchmark.name),
        });
    }
    SampleSet::check_whole(directory)?;
    let path = directory.join(SampleSet::FILE);
    let document = match regular_file::read(&path, MAX_TEXT) {
        Ok(document) => document,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(LibraryError::Unreadable { path, source }),
    };
    let set = SampleSet::from_json(&document).map_err(|source| LibraryError::Document {
        path,
        command: form.prep_command(&benchmark.name),
        source,
    })?;
    set.check(&benchmark.model)
        .map_err(|source| LibraryError::OtherSamples {
            benchmark: benchmark.name.clone(),
            directory: directory.to_owned(),
            source,
        })
}

/// Returns width and height of each sample's original image, when the benchmark's detections are fractions of them; else nothing.
pub(crate) fn image_sizes(benchmark: &Benchmark, scratch: &Path) -> Result<Arc<[[u32; 2]]>, LibraryError> {
    if !matches!(benchmark.model.detections, Some(Detections::Predictions(_))) {
        return Ok(Arc::default());
    }
    let sizes = read_image_sizes(&scratch.join(&benchmark.dataset.map));
    let sizes = sizes.map_err(|source| LibraryError::Map {
        benchmark: benchmark.name.clone(),
        source,
    })?;
    Ok(sizes.into())
}

/// Returns the files of all samples, in the order of their indices, after a check of each.
fn sample_files(
    benchmark: &Benchmark,
    scratch: &Path,
    directory: &Path,
    sample_bytes: usize,
) -> Result<Vec<PathBuf>, LibraryError> {
    let (dataset, name) = (&benchmark.dataset, || benchmark.name.clone());
    let names = read_sample_names(&scratch.join(&dataset.map), dataset.total_samples).map_err(|source| {
        LibraryError::Map {
            benchmark: name(),
            source,
        }
    })?;
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
    Ok(files)
}

/// A quick check that reports a missing or truncated file before LoadGen starts.
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
    /// Returns the shape of a sample on disk.
    fn shape(&self, index: QuerySampleIndex) -> Vec<usize> {
        match self.volumes.get(index) {
            Some(volume) => self.model.input_shape[..1]
                .iter()
                .chain(volume)
                .copied()
                .collect(),
            None => {
                let first = self.model.inputs().next();
                first.and_then(|input| input.stored()).unwrap_or_default()
            }
        }
    }

    /// Replaces the loaded samples.
    fn load(&self, samples: &[QuerySampleIndex]) -> Result<(), LibraryError> {
        let mut arena = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        let mut space = arena.free_space(samples).ok_or(LibraryError::Memory {
            samples: samples.len(),
            sample_bytes: self.sizes.largest(),
        })?;
        for &index in samples {
            let Some((place, behind)) = space.split_at_mut_checked(self.sizes.of(index)) else {
                break;
            };
            space = behind;
            let read = match &self.files {
                Files::PerInput(arrays) => arrays.read(index, place),
                Files::OneEach(files) => {
                    let file = files.get(index).ok_or_else(|| LibraryError::Description {
                        benchmark: self.benchmark.clone(),
                        problem: "LoadGen requests a sample after the last one",
                    })?;
                    read_sample(file, self.model.input_dtype, &self.shape(index), place)
                }
            };
            read.map_err(|source| LibraryError::Sample {
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
