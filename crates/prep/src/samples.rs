//! Writes a set of samples: one `NAME.npy` per sample, the map with a name and label per line, a manifest with the SHA-256 of each
//! file, and the document `samples.json`, which describes the set.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fmt::Write as _,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use regatta_fsutil::{
    atomic_file::{sync_directory, sync_file_system},
    hash::{hex, sha256_hex, sha256_of_file},
};
use regatta_types::{
    benchmark::Benchmark,
    documents::Document as _,
    samples::{Quantised, SampleSet, SampleTensor},
};
use sha2::{Digest as _, Sha256};

use crate::{atomic, error::PrepError, npy};

/// The files of one benchmark's samples. Several threads may store samples at once.
#[derive(Debug, Clone)]
pub(crate) struct SampleFiles {
    dir: PathBuf,
    descr: &'static str,
    /// The shape of a sample in its layout.
    shape: Vec<usize>,
}

/// A sample's file on disk.
#[derive(Debug)]
pub(crate) struct StoredSample {
    /// SHA-256 of the file, hexadecimal.
    sha256: String,
    /// Whether the file did not exist before with the same bytes.
    is_new: bool,
}

impl SampleFiles {
    /// Stores the sample `name` with the same bytes as `numpy.save`.
    pub(crate) fn store(&self, name: &str, data: &[u8]) -> Result<StoredSample, PrepError> {
        self.store_shaped(name, &self.shape, data)
    }

    /// Stores a sample with its own shape.
    pub(crate) fn store_shaped(
        &self,
        name: &str,
        shape: &[usize],
        data: &[u8],
    ) -> Result<StoredSample, PrepError> {
        let path = self.dir.join(format!("{name}.npy"));
        if let Some(parent) = path.parent().filter(|_| name.contains('/')) {
            make_dir(parent)?;
        }
        let bytes = npy::array(self.descr, shape, data);
        let is_new = atomic::write(&path, &bytes).map_err(|source| PrepError::Write { path, source })?;
        Ok(StoredSample {
            sha256: sha256_hex(&bytes),
            is_new,
        })
    }
}

/// Writes one benchmark's samples. Document, manifest and map are written last, so that they only exist for a complete set.
#[derive(Debug)]
pub(crate) struct SampleWriter {
    files: SampleFiles,
    hash: Sha256,
    /// `SHA256  DIRECTORY/NAME.npy` per sample, as `sha256sum` reads it.
    manifest: String,
    /// The number of samples that existed already with the same bytes.
    pub(crate) unchanged: usize,
}

impl SampleWriter {
    /// Creates the directory, and removes its document because its samples will be replaced.
    pub(crate) fn new(benchmark: &Benchmark, out: &Path) -> Result<Self, PrepError> {
        let dir = out.join(&benchmark.dataset.dir);
        begin(&dir)?;
        let first = benchmark.model.inputs().next();
        Ok(Self {
            files: SampleFiles {
                dir,
                descr: benchmark.model.input_dtype.numpy(),
                shape: first.and_then(|input| input.stored()).unwrap_or_default(),
            },
            hash: Sha256::new(),
            manifest: String::new(),
            unchanged: 0,
        })
    }

    /// Returns the samples' files, for threads that store samples.
    pub(crate) fn files(&self) -> SampleFiles {
        self.files.clone()
    }

    /// Stores the sample `name` and records it.
    pub(crate) fn write(&mut self, name: &str, data: &[u8]) -> Result<(), PrepError> {
        let stored = self.files.store(name, data)?;
        self.record(name, data, &stored);
        Ok(())
    }

    /// Records a stored sample. Samples are recorded in the order of the map.
    pub(crate) fn record(&mut self, name: &str, data: &[u8], stored: &StoredSample) {
        self.hash.update(data);
        self.unchanged += usize::from(!stored.is_new);
        let dir = self.files.dir.file_name().unwrap_or_default().to_string_lossy();
        // Writing to a String cannot fail.
        let _ = writeln!(self.manifest, "{}  {dir}/{name}.npy", stored.sha256);
    }

    /// Removes the arrays of samples that were not written. Engines calibrate with all arrays of a list's directory, which may have those of an earlier
    /// list.
    pub(crate) fn remove_others(&self) -> Result<(), PrepError> {
        let dir = &self.files.dir;
        let unreadable = |source| PrepError::Write {
            path: dir.clone(),
            source,
        };
        // A line of the manifest is `SHA256  DIRECTORY/NAME.npy`.
        let lines = self.manifest.lines();
        let own: HashSet<&OsStr> = lines
            .filter_map(|line| line.split_once('/'))
            .map(|(_, name)| OsStr::new(name))
            .collect();
        for entry in fs::read_dir(dir).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let is_array = path.extension() == Some(OsStr::new("npy"));
            if is_array && !path.file_name().is_some_and(|name| own.contains(name)) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// Writes manifest and document, and returns the samples' directory.
    pub(crate) fn finish(
        self,
        benchmark: &Benchmark,
        quantised: Option<Quantised>,
    ) -> Result<PathBuf, PrepError> {
        let dir = self.files.dir;
        let path = manifest_path(&dir);
        atomic::write(&path, self.manifest.as_bytes()).map_err(|source| PrepError::Write { path, source })?;
        write_document(benchmark, &dir, &[hex(&self.hash.finalize())], quantised)?;
        Ok(dir)
    }
}

/// Returns the path of the manifest of the samples in `dir`, beside the directory.
pub(crate) fn manifest_path(dir: &Path) -> PathBuf {
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(".sha256");
    dir.with_file_name(name)
}

/// Writes the manifest of arrays in `dir` by their file names.
pub(crate) fn write_manifest(dir: &Path, names: &[String]) -> Result<(), PrepError> {
    let mut manifest = String::new();
    let name_of_dir = dir.file_name().unwrap_or_default().to_string_lossy();
    for name in names {
        let path = dir.join(name);
        let hash = sha256_of_file(&path).map_err(|source| PrepError::Write { path, source })?;
        // Writing to a String cannot fail.
        let _ = writeln!(manifest, "{}  {name_of_dir}/{name}", hash.hex());
    }
    let path = manifest_path(dir);
    let written = atomic::write(&path, manifest.as_bytes());
    written
        .map(drop)
        .map_err(|source| PrepError::Write { path, source })
}

/// Creates the directory for new samples, marks it as unfinished, and flushes that to disk.
pub(crate) fn begin(dir: &Path) -> Result<(), PrepError> {
    make_dir(dir)?;
    let path = dir.join(SampleSet::UNFINISHED);
    fs::write(&path, "").map_err(|source| PrepError::Write { path, source })?;
    remove(&dir.join(SampleSet::FILE))?;
    flushed(dir, sync_directory(dir))
}

/// Writes the document of the complete samples in `dir`, with one hash for each input of the model. All samples are flushed
/// to disk before the unfinished mark is removed, because readers do not check every sample after a power cut.
pub(crate) fn write_document(
    benchmark: &Benchmark,
    dir: &Path,
    hashes: &[String],
    quantised: Option<Quantised>,
) -> Result<(), PrepError> {
    let tensors = benchmark
        .model
        .inputs()
        .zip(hashes)
        .map(|(input, sha256)| SampleTensor {
            name: input.name.map(str::to_owned),
            dtype: input.dtype,
            format: input.layout,
            shape: input.shape.to_vec(),
            sha256: sha256.clone(),
        });
    let set = SampleSet {
        schema: SampleSet::SCHEMA,
        benchmark: benchmark.name.clone(),
        samples: benchmark.dataset.total_samples,
        tensors: tensors.collect(),
        quantised,
    };
    let path = dir.join(SampleSet::FILE);
    let text = serde_json::to_vec_pretty(&set).map_err(io::Error::from);
    text.and_then(|mut text| {
        text.push(b'\n');
        atomic::write(&path, &text)
    })
    .map_err(|source| PrepError::Write { path, source })?;
    flushed(dir, sync_file_system(dir))?;
    remove(&dir.join(SampleSet::UNFINISHED))?;
    flushed(dir, sync_directory(dir))
}

/// Names the directory in the error of flushing it.
fn flushed(dir: &Path, synced: io::Result<()>) -> Result<(), PrepError> {
    synced.map_err(|source| PrepError::Write {
        path: dir.to_owned(),
        source,
    })
}

/// The map of a benchmark's samples, which does not exist while they are being replaced.
pub(crate) struct MapFile<'a> {
    path: PathBuf,
    text: &'a str,
}

impl<'a> MapFile<'a> {
    /// Creates the map's directory, and removes a map that differs from `text`.
    pub(crate) fn new(benchmark: &Benchmark, out: &Path, text: &'a str) -> Result<Self, PrepError> {
        let path = out.join(&benchmark.dataset.map);
        make_dir(path.parent().unwrap_or(out))?;
        if fs::read(&path).is_ok_and(|present| present != text.as_bytes()) {
            remove(&path)?;
        }
        Ok(Self { path, text })
    }

    /// Writes the map and returns its path.
    pub(crate) fn finish(self) -> Result<PathBuf, PrepError> {
        let written = atomic::write(&self.path, self.text.as_bytes());
        match written.and_then(|_| File::open(&self.path)?.sync_all()) {
            Ok(()) => Ok(self.path),
            Err(source) => Err(PrepError::Write {
                path: self.path,
                source,
            }),
        }
    }
}

pub(crate) fn make_dir(dir: &Path) -> Result<(), PrepError> {
    fs::create_dir_all(dir).map_err(|source| PrepError::Write {
        path: dir.to_owned(),
        source,
    })
}

/// Removes a file if it exists.
pub(crate) fn remove(path: &Path) -> Result<(), PrepError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(PrepError::Write {
            path: path.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}
