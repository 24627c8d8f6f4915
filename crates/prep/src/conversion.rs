//! Converts a benchmark's samples, which are 32-bit floats in linear layout, to 16-bit floats or 8-bit integers in the layout
//! that an engine reads. Each form has its own directory, so that GPU and DLA, or two boards, can use different ones. Any
//! program may have prepared the benchmark's own samples, as long as they match its file.

use std::{io, path::Path};

use half::f16;
use regatta_datasets::val_map;
use regatta_fsutil::regular_file;
use regatta_types::{
    benchmark::{Benchmark, Dtype, Prep},
    npy::NpyHeader,
    samples::{Form, Quantised, SampleSet},
};

use crate::{
    error::PrepError,
    npy::{self, NpyError},
    packing::pack,
    quantisation::quantise,
    report::PrepReport,
    samples::SampleWriter,
};

/// Converts the benchmark's own samples below the scratch directory `out` to `form`, and leaves them unchanged.
/// `quantised` contains the scale and rounding for `int8`, and is `None` for other types.
///
/// A second call changes nothing. `progress` is called after each sample with the number of finished samples and of all.
///
/// # Errors
/// [`PrepError`] names the file or setting that is wrong.
pub fn convert_samples(
    benchmark: &Benchmark,
    form: Form,
    quantised: Option<&Quantised>,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let target = benchmark.in_form(form)?;
    if matches!(benchmark.prep, Some(Prep::Volumes(_))) {
        return Err(PrepError::UnsupportedSettings {
            benchmark: benchmark.name.clone(),
            reason:
                "samples of different sizes are made from the volumes; hint: name the dataset with --data"
                    .to_owned(),
        });
    }
    if matches!(benchmark.prep, Some(Prep::Speech(_))) {
        return Err(PrepError::UnsupportedSettings {
            benchmark: benchmark.name.clone(),
            reason: "waveforms are made from the utterances; hint: name the dataset with --data".to_owned(),
        });
    }
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
    // Otherwise a mixture of old and new samples would get a document that calls it complete.
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
        damaged: Vec::new(),
        dir: writer.finish(&target, quantised.cloned())?,
        map,
    })
}

/// Reads a sample and converts it.
fn sample(
    path: &Path,
    benchmark: &Benchmark,
    form: Form,
    quantised: Option<&Quantised>,
    clipped: &mut u64,
) -> Result<Vec<u8>, NpyError> {
    let shape = &benchmark.model.input_shape;
    let values = read(path, shape)?;
    let mut elements = Vec::with_capacity(values.len() * form.dtype.size());
    for (position, &value) in values.iter().enumerate() {
        if !value.is_finite() {
            return Err(NpyError::NotFinite(position));
        }
        let beyond = push_element(value, form.dtype, quantised, &mut elements);
        *clipped += u64::from(beyond);
    }
    // `in_form` has checked that the benchmark's shape can have the layout.
    Ok(pack(&elements, form.dtype.size(), shape, form.layout).unwrap_or_default())
}

/// Appends a value as an element of `dtype`, with `quantised` for `int8`. Returns whether it was out of range.
pub(crate) fn push_element(
    value: f32,
    dtype: Dtype,
    quantised: Option<&Quantised>,
    elements: &mut Vec<u8>,
) -> bool {
    if let Some(by) = quantised {
        let (whole, beyond) = quantise(value, by);
        elements.extend(whole.to_le_bytes());
        return beyond;
    }
    match dtype {
        Dtype::Float16 => {
            let half = f16::from_f32(value);
            elements.extend(half.to_le_bytes());
            !half.is_finite()
        }
        Dtype::Uint8 => {
            let whole = value.round_ties_even();
            elements.push(whole as u8);
            !(0.0..=255.0).contains(&whole)
        }
        Dtype::Float64 => {
            elements.extend(f64::from(value).to_le_bytes());
            false
        }
        _ => {
            elements.extend(value.to_le_bytes());
            false
        }
    }
}

/// Returns the elements of little-endian 32-bit floats, and the number of those out of the range of the type; 0 for
/// float32.
pub(crate) fn elements(floats: Vec<u8>, dtype: Dtype, quantised: Option<&Quantised>) -> (Vec<u8>, u64) {
    if dtype == Dtype::Float32 {
        return (floats, 0);
    }
    let (values, _) = floats.as_chunks();
    let mut data = Vec::with_capacity(values.len() * dtype.size());
    let is_clipped =
        |value: &&[u8; 4]| push_element(f32::from_le_bytes(**value), dtype, quantised, &mut data);
    let clipped = values.iter().filter(is_clipped).count() as u64;
    (data, clipped)
}

/// More than a sample takes, in bytes.
const MAX_SAMPLE: u64 = 1 << 32;

/// Reads the values of a sample of 32-bit floats.
fn read(path: &Path, shape: &[usize]) -> Result<Vec<f32>, NpyError> {
    let file = regular_file::read(path, MAX_SAMPLE)?;
    let mut data = &file[..];
    npy::expect(&NpyHeader::read(&mut data)?, Dtype::Float32.numpy(), None, shape)?;
    let count = shape.iter().product::<usize>();
    let (values, _) = data.as_chunks();
    match values.get(..count) {
        Some(values) => Ok(values.iter().map(|value| f32::from_le_bytes(*value)).collect()),
        None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
    }
}
