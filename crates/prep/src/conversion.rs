//! Samples in another form: from a benchmark's own, which are 32-bit floats in linear layout, to 16-bit floats or bytes, in the
//! layout that an engine reads. Each form lies in a directory of its own, so that a GPU and a DLA, or two boards, are served
//! side by side. The own samples may be anybody's: what counts is the benchmark's file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use half::f16;
use npyz::NpyFile;
use regatta_rules::{
    benchmark::{Benchmark, Dtype},
    samples::{Form, Quantised, SampleSet},
};

use crate::{
    error::PrepError,
    layout::pack,
    npy::{self, NpyFault},
    prepare::PrepReport,
    samples::SampleWriter,
    scale::quantise,
    val_map,
};

/// Makes samples of `form` out of the benchmark's own below the scratch directory `out`, which are left as they are.
/// `quantised` says how floats become bytes, and belongs to `int8` alone.
///
/// Doing so again changes nothing. `progress` is called after each sample with the number done and the number in all.
///
/// # Errors
/// See [`PrepError`].
pub fn make_form(
    benchmark: &Benchmark,
    form: Form,
    quantised: Option<&Quantised>,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let target = benchmark.in_form(form)?;
    if (form.dtype == Dtype::Int8) != quantised.is_some() {
        return Err(PrepError::Scale { form });
    }
    let map = out.join(&benchmark.dataset.map);
    let names = val_map::names(&map)?;
    let (expected, found) = (benchmark.dataset.total_samples, names.len());
    if expected != found {
        return Err(PrepError::SampleCount {
            path: map,
            expected,
            found,
        });
    }
    let source = out.join(&benchmark.dataset.dir);
    // What is made of samples old and new would be whole by its own document.
    SampleSet::check_whole(&source)?;
    let mut writer = SampleWriter::new(&target, out)?;
    let mut clipped = 0;
    for (index, name) in names.iter().enumerate() {
        let path = source.join(format!("{name}.npy"));
        let sample = sample(&path, benchmark, form, quantised, &mut clipped)
            .map_err(|source| PrepError::Source { path, source })?;
        writer.write(name, &sample)?;
        progress(index + 1, found);
    }
    Ok(PrepReport {
        samples: found,
        unchanged: writer.unchanged,
        clipped,
        dir: writer.finish(&target, quantised.cloned())?,
        map,
    })
}

/// One sample in its new form.
fn sample(
    path: &PathBuf,
    benchmark: &Benchmark,
    form: Form,
    quantised: Option<&Quantised>,
    clipped: &mut u64,
) -> Result<Vec<u8>, NpyFault> {
    let shape = &benchmark.model.input_shape;
    let values = read(path, shape)?;
    let mut elements = Vec::with_capacity(values.len() * form.dtype.size());
    for (position, &value) in values.iter().enumerate() {
        if !value.is_finite() {
            return Err(NpyFault::NotFinite(position));
        }
        let beyond = match quantised {
            Some(by) => {
                let (whole, beyond) = quantise(value, by);
                elements.extend(whole.to_le_bytes());
                beyond
            }
            None if form.dtype == Dtype::Float16 => {
                let half = f16::from_f32(value);
                elements.extend(half.to_le_bytes());
                !half.is_finite()
            }
            None => {
                elements.extend(value.to_le_bytes());
                false
            }
        };
        *clipped += u64::from(beyond);
    }
    // The benchmark was found to have the form.
    Ok(pack(&elements, form.dtype.size(), shape, form.layout).unwrap_or_default())
}

/// The values of a sample of 32-bit floats.
fn read(path: &PathBuf, shape: &[usize]) -> Result<Vec<f32>, NpyFault> {
    let file = fs::read(path)?;
    let npy = NpyFile::new(&file[..])?;
    npy::expect(npy.header(), Dtype::Float32.numpy(), None, shape)?;
    Ok(npy.into_vec()?)
}
