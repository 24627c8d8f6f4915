//! The preparation kind `arrays` for a model with one input: one array of all samples becomes a file for each, because the samples of such a model
//! have names and labels. Converts no elements.

use std::{
    fmt::Write as _,
    io::{BufReader, Read as _},
    path::Path,
};

use regatta_datasets::val_map::{self, ValMap};
use regatta_fsutil::regular_file;
use regatta_types::{
    benchmark::{AccuracyMetric, Benchmark, ModelInput},
    npy::NpyHeader,
};

use crate::{
    error::PrepError,
    npy::{self, NpyError},
    report::PrepReport,
    samples::{MapFile, SampleWriter},
};

/// The names and labels beside the arrays, a line for each sample.
const LABELS: &str = "val_map.txt";
/// The array of an input without a name.
const UNNAMED: &str = "samples";

/// Writes the samples of `NAME.npy` in `data`, or of `samples.npy` if the input has no name.
pub(crate) fn prepare(
    benchmark: &Benchmark,
    input: &ModelInput<'_>,
    data: &Path,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let total = benchmark.dataset.total_samples;
    let text = match map_text(benchmark, data)? {
        Some(text) => text,
        None => unlabelled(total),
    };
    let path = data.join(format!("{}.npy", input.name.unwrap_or(UNNAMED)));
    let file = regular_file::open(&path).map_err(|source| PrepError::Open {
        path: path.clone(),
        source,
    })?;
    let invalid = |source: NpyError| PrepError::Array {
        path: path.clone(),
        source,
    };
    let mut array = BufReader::new(file);
    let header = NpyHeader::read(&mut array).map_err(|error| invalid(error.into()))?;
    let shape: Vec<usize> = std::iter::once(total)
        .chain(input.shape.iter().copied())
        .collect();
    npy::expect(&header, input.dtype.numpy(), None, &shape).map_err(invalid)?;
    let map = MapFile::new(benchmark, out, &text)?;
    let mut writer = SampleWriter::new(benchmark, out)?;
    let mut sample = vec![0; input.bytes().unwrap_or(0)];
    for (index, line) in text.lines().enumerate() {
        array
            .read_exact(&mut sample)
            .map_err(|error| invalid(error.into()))?;
        writer.write(line.split_whitespace().next().unwrap_or_default(), &sample)?;
        progress(index + 1, total);
    }
    if array.read(&mut [0]).map_err(|error| invalid(error.into()))? > 0 {
        return Err(invalid(NpyError::TooLong));
    }
    Ok(PrepReport {
        samples: total,
        unchanged: writer.unchanged,
        clipped: 0,
        damaged: Vec::new(),
        dir: writer.finish(benchmark, None)?,
        map: map.finish()?,
    })
}

/// Returns the names and labels beside the arrays. `None` if there is no such file and the metric needs no classes.
///
/// # Errors
/// [`PrepError`] when it cannot be read, or has another number of samples.
pub(crate) fn map_text(benchmark: &Benchmark, data: &Path) -> Result<Option<String>, PrepError> {
    let path = data.join(LABELS);
    let needs_classes = matches!(
        benchmark.accuracy.metric,
        AccuracyMetric::Top1 | AccuracyMetric::Top5 | AccuracyMetric::Auc
    );
    // Without labels, every sample would be of class 0.
    if !needs_classes && path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let labels = ValMap::read(&path)?;
    let expected = benchmark.dataset.total_samples;
    if labels.len() != expected {
        return Err(PrepError::SampleCount {
            path,
            expected,
            found: labels.len(),
        });
    }
    let mut text = String::new();
    for (index, name) in val_map::names(&path)?.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name} {}", labels.label(index).unwrap_or_default());
    }
    Ok(Some(text))
}

/// Returns the map of samples without labels.
fn unlabelled(total: usize) -> String {
    let mut text = String::new();
    for index in 0..total {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "sample_{index:06} 0");
    }
    text
}
