//! The preparation kind `arrays`: checks one `.npy` file per model input, which another program made from all samples, and
//! copies it for the harness. Converts 64-bit integers, the usual output of tokenisers, to 32 bits if every value fits.

use std::{
    io::{self, BufReader, Read},
    path::Path,
};

use regatta_fsutil::{atomic_file::AtomicFile, hash::hex, regular_file};
use regatta_types::{
    benchmark::{Benchmark, Dtype, ModelInput},
    documents::Document as _,
    npy::NpyHeader,
    samples::SampleSet,
};
use sha2::{Digest as _, Sha256};

use crate::{
    array_samples,
    error::PrepError,
    npy::{self, NpyError},
    report::PrepReport,
    samples::{MapFile, begin, remove, write_document, write_manifest},
};

/// The number of bytes that are read at a time.
const BUFFER_LEN: usize = 1 << 20;

/// Copies the arrays in `data` to the scratch directory `out`. `progress` counts samples over all arrays.
pub(crate) fn prepare(
    benchmark: &Benchmark,
    data: &Path,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let inputs: Vec<ModelInput<'_>> = benchmark.model.inputs().collect();
    if let [only] = &inputs[..] {
        return array_samples::prepare(benchmark, only, data, out, progress);
    }
    let dir = out.join(&benchmark.dataset.dir);
    let total = benchmark.dataset.total_samples;
    // Read before it is replaced, to report whether the arrays have changed.
    let before = std::fs::read(dir.join(SampleSet::FILE)).ok();
    begin(&dir)?;
    let labels = match &*benchmark.dataset.map {
        "" => None,
        _ => array_samples::map_text(benchmark, data)?,
    };
    let map = labels
        .as_deref()
        .map(|text| MapFile::new(benchmark, out, text))
        .transpose()?;
    if map.is_none() && before.is_some() && !benchmark.dataset.map.is_empty() {
        // The labels of the earlier samples are not those of these.
        remove(&out.join(&benchmark.dataset.map))?;
    }
    let mut hashes = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let name = input.name.ok_or_else(|| PrepError::UnsupportedSettings {
            benchmark: benchmark.name.clone(),
            reason: "arrays are named after their inputs, but one has no name".to_owned(),
        })?;
        let path = data.join(format!("{name}.npy"));
        let file = regular_file::open(&path).map_err(|source| PrepError::Open {
            path: path.clone(),
            source,
        })?;
        let target = dir.join(format!("{name}.npy"));
        let mut array_error = None;
        let mut hash = Sha256::new();
        let copied = AtomicFile::new(&target).unflushed().write_with(|to| {
            copy(BufReader::new(file), input, total, &mut hash, to).map_err(|error| match error {
                CopyError::Write(error) => error,
                CopyError::Array(error) => {
                    array_error = Some(error);
                    io::Error::other("the array is invalid")
                }
            })
        });
        if let Some(source) = array_error {
            return Err(PrepError::Array { path, source });
        }
        copied.map_err(|source| PrepError::Write { path: target, source })?;
        hashes.push(hex(&hash.finalize()));
        progress((number + 1) * total, inputs.len() * total);
    }
    let names: Vec<String> = inputs
        .iter()
        .filter_map(|input| Some(format!("{}.npy", input.name?)))
        .collect();
    write_manifest(&dir, &names)?;
    write_document(benchmark, &dir, &hashes, None)?;
    let same = before
        .and_then(|before| SampleSet::from_json(&before).ok())
        .is_some_and(|before| before.tensors.iter().map(|tensor| &tensor.sha256).eq(&hashes));
    Ok(PrepReport {
        samples: total,
        unchanged: if same { total } else { 0 },
        clipped: 0,
        damaged: Vec::new(),
        map: match map {
            Some(map) => map.finish()?,
            None => out.join(&benchmark.dataset.map),
        },
        dir,
    })
}

/// The error of a copy: of the array that is read, or of the file that is written.
enum CopyError {
    Array(NpyError),
    Write(io::Error),
}

impl From<NpyError> for CopyError {
    fn from(error: NpyError) -> Self {
        Self::Array(error)
    }
}

impl From<io::Error> for CopyError {
    fn from(unreadable: io::Error) -> Self {
        Self::Array(unreadable.into())
    }
}

/// Copies an array as the input's type, and hashes its data.
fn copy(
    mut from: impl Read,
    input: &ModelInput<'_>,
    total: usize,
    hash: &mut Sha256,
    to: &mut dyn io::Write,
) -> Result<(), CopyError> {
    let header = NpyHeader::read(&mut from).map_err(NpyError::from)?;
    let shape: Vec<usize> = std::iter::once(total)
        .chain(input.shape.iter().copied())
        .collect();
    let wide = (input.dtype == Dtype::Int32).then(|| Dtype::Int64.numpy());
    let is_wide = npy::expect(&header, input.dtype.numpy(), wide, &shape)?;
    to.write_all(&npy::header(input.dtype.numpy(), &shape))
        .map_err(CopyError::Write)?;
    let size = if is_wide {
        Dtype::Int64.size()
    } else {
        input.dtype.size()
    };
    let mut left = shape.iter().product::<usize>() * size;
    let (mut buffer, mut before) = (vec![0; BUFFER_LEN], 0);
    while left > 0 {
        let next = &mut buffer[..left.min(BUFFER_LEN)];
        from.read_exact(next)?;
        left -= next.len();
        let narrowed;
        let written = if is_wide {
            narrowed = narrow(next, before)?;
            before += (next.len() / size) as u64;
            &narrowed
        } else {
            &*next
        };
        hash.update(written);
        to.write_all(written).map_err(CopyError::Write)?;
    }
    if from.read(&mut [0])? > 0 {
        return Err(NpyError::TooLong.into());
    }
    Ok(())
}

/// Converts 64-bit integers to 32-bit integers. `before` is the position of the first one in the array.
fn narrow(wide: &[u8], before: u64) -> Result<Vec<u8>, NpyError> {
    let mut narrow = Vec::with_capacity(wide.len() / 2);
    for (position, bytes) in (before..).zip(wide.as_chunks().0) {
        let value = i64::from_le_bytes(*bytes);
        let narrowed = i32::try_from(value).map_err(|_| NpyError::TooLarge { position, value })?;
        narrow.extend(narrowed.to_le_bytes());
    }
    Ok(narrow)
}
