//! Writes a set of samples: one `NAME.npy` per sample, the map with a name and label per line, and the document
//! `samples.json`, which describes the set.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use regatta_fsutil::hash::hex;
use regatta_types::{
    benchmark::Benchmark,
    documents::Document as _,
    samples::{Quantised, SampleSet, SampleTensor},
};
use sha2::{Digest as _, Sha256};

use crate::{atomic, error::PrepError, npy};

/// Writes one benchmark's samples. Document and map are written last, so that they only exist for a complete set.
#[derive(Debug)]
pub(crate) struct SampleWriter {
    dir: PathBuf,
    descr: &'static str,
    /// The shape of a sample in its layout.
    shape: Vec<usize>,
    hash: Sha256,
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
            dir,
            descr: benchmark.model.input_dtype.numpy(),
            shape: first.and_then(|input| input.stored()).unwrap_or_default(),
            hash: Sha256::new(),
            unchanged: 0,
        })
    }

    /// Writes the sample `name` with the same bytes as `numpy.save`.
    pub(crate) fn write(&mut self, name: &str, data: &[u8]) -> Result<(), PrepError> {
        self.hash.update(data);
        let path = self.dir.join(format!("{name}.npy"));
        if let Some(parent) = path.parent().filter(|_| name.contains('/')) {
            make_dir(parent)?;
        }
        let written = atomic::write(&path, &npy::array(self.descr, &self.shape, data));
        let written = written.map_err(|source| PrepError::Write { path, source })?;
        self.unchanged += usize::from(!written);
        Ok(())
    }

    /// Writes the document and returns the samples' directory.
    pub(crate) fn finish(
        self,
        benchmark: &Benchmark,
        quantised: Option<Quantised>,
    ) -> Result<PathBuf, PrepError> {
        let hashes = [hex(&self.hash.finalize())];
        write_document(benchmark, &self.dir, &hashes, quantised)?;
        Ok(self.dir)
    }
}

/// Creates the directory for new samples, marks it as unfinished, and flushes that to disk.
pub(crate) fn begin(dir: &Path) -> Result<(), PrepError> {
    make_dir(dir)?;
    let path = dir.join(SampleSet::UNFINISHED);
    fs::write(&path, "").map_err(|source| PrepError::Write { path, source })?;
    remove(&dir.join(SampleSet::FILE))?;
    flush_with(dir, |dir| dir.sync_all())
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
    // Flushes the file system once, because flushing tens of thousands of files one by one takes minutes.
    flush_with(dir, |dir| Ok(rustix::fs::syncfs(dir)?))?;
    remove(&dir.join(SampleSet::UNFINISHED))?;
    flush_with(dir, |dir| dir.sync_all())
}

/// Flushes `dir` to disk with `sync`.
fn flush_with(dir: &Path, sync: impl FnOnce(&File) -> io::Result<()>) -> Result<(), PrepError> {
    let synced = File::open(dir).and_then(|dir| sync(&dir));
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
