//! From a benchmark's file and a dataset to samples on disk.
//!
//! The benchmark's `[prep]` section picks a kind of preparation; no benchmark is known here by name.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use regatta_rules::benchmark::{Benchmark, Dtype, Prep};

use crate::{csv_images, error::PrepError, samples::SampleWriter};

/// What a preparation left on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrepReport {
    /// Samples of the set.
    pub samples: usize,
    /// How many of them were there already, byte for byte.
    pub unchanged: usize,
    /// Where they lie.
    pub dir: PathBuf,
    /// The map file.
    pub map: PathBuf,
}

/// Where a benchmark's dataset lies by custom: `data/NAME` below the scratch directory.
#[must_use]
pub fn raw_data_dir(benchmark: &Benchmark, scratch: &Path) -> PathBuf {
    scratch.join("data").join(&benchmark.name)
}

/// Makes the samples of `benchmark` out of the dataset in `data`, below the scratch directory `out`.
///
/// Doing so again changes nothing; after an interruption it completes the set. `progress` is called after each sample
/// with the number done and the number in all.
///
/// # Errors
/// See [`PrepError`]. A dataset is read to its end before anything is written.
pub fn prepare(
    benchmark: &Benchmark,
    data: &Path,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    match &benchmark.prep {
        None => Err(PrepError::NoRecipe {
            benchmark: benchmark.name.clone(),
        }),
        Some(Prep::CsvImages {
            source,
            skip_rows,
            divisor,
        }) => {
            check_csv_images(benchmark, *divisor)?;
            let table = data.join(source);
            prepare_csv_images(benchmark, &table, *skip_rows, *divisor, out, progress)
        }
    }
}

/// What the kind `csv-images` needs of a benchmark's file.
fn check_csv_images(benchmark: &Benchmark, divisor: f32) -> Result<(), PrepError> {
    let reason = if benchmark.model.input_dtype != Dtype::Float32 {
        format!(
            "csv-images makes float32 samples, not {:?}",
            benchmark.model.input_dtype
        )
    } else if !divisor.is_normal() {
        format!("pixels cannot be divided by {divisor}")
    } else {
        return Ok(());
    };
    Err(PrepError::Recipe {
        benchmark: benchmark.name.clone(),
        reason,
    })
}

fn prepare_csv_images(
    benchmark: &Benchmark,
    table: &Path,
    skip_rows: usize,
    divisor: f32,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let shape = &benchmark.model.input_shape;
    let images = csv_images::read(table, skip_rows, shape.iter().product())?;
    let (expected, found) = (benchmark.dataset.total_samples, images.len());
    if expected != found {
        return Err(PrepError::SampleCount {
            path: table.to_owned(),
            expected,
            found,
        });
    }
    let stem = stem(table);
    let mut map_text = String::new();
    for image in &images {
        // Writing to a String cannot fail.
        let _ = writeln!(map_text, "{stem}_{} {}", image.row, image.label);
    }
    let mut writer = SampleWriter::new(&benchmark.dataset, shape, out, &map_text)?;
    for (index, image) in images.iter().enumerate() {
        let values: Vec<f32> = image.pixels.iter().map(|pixel| pixel / divisor).collect();
        writer.write_float32(&format!("{stem}_{}", image.row), &values)?;
        progress(index + 1, found);
    }
    let unchanged = writer.unchanged;
    let (dir, map) = writer.finish(&map_text)?;
    Ok(PrepReport {
        samples: found,
        unchanged,
        dir,
        map,
    })
}

/// The table's name up to its first dot, with spaces replaced: names in a map are split at spaces.
fn stem(table: &Path) -> String {
    let name = table.file_name().unwrap_or_default().to_string_lossy();
    name.split('.')
        .next()
        .unwrap_or_default()
        .replace(char::is_whitespace, "_")
}
