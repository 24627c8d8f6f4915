//! Samples, their map and their document on disk, as the field keeps them: `NAME.npy` each, lines of name and label, and
//! `samples.json`, which says what they are.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use regatta_rules::{
    benchmark::Benchmark,
    documents::Document as _,
    samples::{Quantised, SampleSet, SampleTensor},
};
use sha2::{Digest as _, Sha256};

use crate::{atomic, error::PrepError, npy};

/// Writes one benchmark's samples. Document and map come last, so that each means a whole set.
#[derive(Debug)]
pub(crate) struct SampleWriter {
    dir: PathBuf,
    descr: &'static str,
    /// The shape of a sample as it lies.
    shape: Vec<usize>,
    hash: Sha256,
    /// Samples that were there already with the same content.
    pub(crate) unchanged: usize,
}

impl SampleWriter {
    /// Makes the directory, and takes away a document: its samples are about to be replaced.
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

    /// Writes the sample `name`, with the bytes that `numpy.save` writes for the same array.
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

    /// Writes the document, and gives the samples' directory.
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

/// Makes the directory of samples that are about to be made, and says in it that they are not whole. A power cut does not take
/// this back.
pub(crate) fn begin(dir: &Path) -> Result<(), PrepError> {
    make_dir(dir)?;
    let path = dir.join(SampleSet::UNFINISHED);
    fs::write(&path, "").map_err(|source| PrepError::Write { path, source })?;
    remove(&dir.join(SampleSet::FILE))?;
    durably(dir, |dir| dir.sync_all())
}

/// Says what the samples in `dir` are, and that all of them are there: on the disk, since after a power cut nobody would look at
/// each. There is a hash for every input of the model.
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
    // Once for the file system: tens of thousands of files one by one take minutes.
    durably(dir, |dir| Ok(rustix::fs::syncfs(dir)?))?;
    remove(&dir.join(SampleSet::UNFINISHED))?;
    durably(dir, |dir| dir.sync_all())
}

/// Brings what `dir` holds to the disk, as `sync` does it.
fn durably(dir: &Path, sync: impl FnOnce(&File) -> io::Result<()>) -> Result<(), PrepError> {
    let synced = File::open(dir).and_then(|dir| sync(&dir));
    synced.map_err(|source| PrepError::Write {
        path: dir.to_owned(),
        source,
    })
}

/// The map of a benchmark's samples, which is taken away while they are replaced by others.
pub(crate) struct MapFile<'a> {
    path: PathBuf,
    text: &'a str,
}

impl<'a> MapFile<'a> {
    /// Makes the map's directory, and takes away a map that says something else than `text`.
    pub(crate) fn new(benchmark: &Benchmark, out: &Path, text: &'a str) -> Result<Self, PrepError> {
        let path = out.join(&benchmark.dataset.map);
        make_dir(path.parent().unwrap_or(out))?;
        if fs::read(&path).is_ok_and(|present| present != text.as_bytes()) {
            remove(&path)?;
        }
        Ok(Self { path, text })
    }

    /// Writes it, and gives its path.
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

/// Removes a file that need not be there.
pub(crate) fn remove(path: &Path) -> Result<(), PrepError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(PrepError::Write {
            path: path.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
