//! The preparation kind `arrays`: for every input of a model a `.npy` of all samples that another program has made, checked and
//! put where the harness reads it. 64-bit integers, which tokenisers like to give, become 32-bit ones where every one of them fits.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

use npyz::NpyFile;
use regatta_rules::{
    benchmark::{Benchmark, Dtype, ModelInput},
    documents::Document as _,
    samples::SampleSet,
};
use sha2::{Digest as _, Sha256};

use crate::{
    atomic,
    error::PrepError,
    npy::{self, NpyFault},
    prepare::PrepReport,
    samples::{begin, hex, write_document},
};

/// How much is read at a time.
const PIECE: usize = 1 << 20;

/// Puts the arrays in `data` below the scratch directory `out`. `progress` counts samples, array by array.
pub(crate) fn prepare(
    benchmark: &Benchmark,
    data: &Path,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let dir = out.join(&benchmark.dataset.dir);
    let total = benchmark.dataset.total_samples;
    // Only whether anything changes hangs on it.
    let before = std::fs::read(dir.join(SampleSet::FILE)).ok();
    begin(&dir)?;
    let inputs: Vec<ModelInput<'_>> = benchmark.model.inputs().collect();
    let mut hashes = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let name = input.name.ok_or_else(|| PrepError::Recipe {
            benchmark: benchmark.name.clone(),
            reason: "arrays are named after their inputs, but one has no name".to_owned(),
        })?;
        let path = data.join(format!("{name}.npy"));
        let file = File::open(&path).map_err(|source| PrepError::Open {
            path: path.clone(),
            source,
        })?;
        let target = dir.join(format!("{name}.npy"));
        let mut fault = None;
        let mut hash = Sha256::new();
        let copied = atomic::replace(&target, |to| {
            copy(BufReader::new(file), input, total, &mut hash, to).map_err(|error| match error {
                Trouble::Write(error) => error,
                Trouble::Array(error) => {
                    fault = Some(error);
                    io::Error::other("the array does not do")
                }
            })
        });
        if let Some(source) = fault {
            return Err(PrepError::Array { path, source });
        }
        copied.map_err(|source| PrepError::Write { path: target, source })?;
        hashes.push(hex(&hash.finalize()));
        progress((number + 1) * total, inputs.len() * total);
    }
    write_document(benchmark, &dir, &hashes, None)?;
    let same = before
        .and_then(|before| SampleSet::from_json(&before).ok())
        .is_some_and(|before| before.tensors.iter().map(|tensor| &tensor.sha256).eq(&hashes));
    Ok(PrepReport {
        samples: total,
        unchanged: if same { total } else { 0 },
        clipped: 0,
        map: out.join(&benchmark.dataset.map),
        dir,
    })
}

/// Whose fault it is.
enum Trouble {
    Array(NpyFault),
    Write(io::Error),
}

impl From<NpyFault> for Trouble {
    fn from(fault: NpyFault) -> Self {
        Self::Array(fault)
    }
}

impl From<io::Error> for Trouble {
    fn from(unreadable: io::Error) -> Self {
        Self::Array(unreadable.into())
    }
}

/// Copies an array, as the input's type, and hashes its data.
fn copy(
    from: impl Read,
    input: &ModelInput<'_>,
    total: usize,
    hash: &mut Sha256,
    to: &mut dyn io::Write,
) -> Result<(), Trouble> {
    let npy = NpyFile::new(from)?;
    let header = npy.header();
    let shape: Vec<usize> = std::iter::once(total)
        .chain(input.shape.iter().copied())
        .collect();
    let wide = (input.dtype == Dtype::Int32).then(|| Dtype::Int64.numpy());
    let is_wide = npy::expect(header, input.dtype.numpy(), wide, &shape)?;
    to.write_all(&npy::header(input.dtype.numpy(), &shape))
        .map_err(Trouble::Write)?;
    let size = if is_wide {
        Dtype::Int64.size()
    } else {
        input.dtype.size()
    };
    let mut left = shape.iter().product::<usize>() * size;
    let (mut data, mut piece, mut before) = (npy.into_inner(), vec![0; PIECE], 0);
    while left > 0 {
        let next = &mut piece[..left.min(PIECE)];
        data.read_exact(next)?;
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
        to.write_all(written).map_err(Trouble::Write)?;
    }
    if data.read(&mut [0])? > 0 {
        return Err(NpyFault::TooLong.into());
    }
    Ok(())
}

/// 64-bit integers as 32-bit ones; `before` counts those in front of them.
fn narrow(wide: &[u8], before: u64) -> Result<Vec<u8>, NpyFault> {
    let mut narrow = Vec::with_capacity(wide.len() / 2);
    for (position, bytes) in (before..).zip(wide.as_chunks().0) {
        let value = i64::from_le_bytes(*bytes);
        let fitting = i32::try_from(value).map_err(|_| NpyFault::TooLarge { position, value })?;
        narrow.extend(fitting.to_le_bytes());
    }
    Ok(narrow)
}
