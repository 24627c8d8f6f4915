//! Prepares a benchmark's samples on disk from its file and its dataset.
//!
//! The benchmark's `[prep]` section selects the kind of preparation. This file knows no benchmark by name.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use regatta_types::{
    benchmark::{Benchmark, Dtype, Prep},
    layout::Layout,
    samples::Form,
};

use crate::{
    arrays, csv_images,
    error::PrepError,
    image_samples::prepare_images,
    jpeg_images::ImageRequest,
    published,
    report::PrepReport,
    samples::{MapFile, SampleWriter},
    squad,
};

/// Returns the usual directory of a benchmark's dataset: the one in its file, otherwise `data/NAME` below the scratch directory.
#[must_use]
pub fn raw_data_dir(benchmark: &Benchmark, scratch: &Path) -> PathBuf {
    match &benchmark.dataset.source {
        Some(source) => scratch.join(source),
        None => scratch.join("data").join(&benchmark.name),
    }
}

/// Prepares the samples of `benchmark` from the dataset in `data`, below the scratch directory `out`.
///
/// A second call changes nothing, and completes the set after an interruption. `progress` is called after each sample with
/// the number of finished samples and of all samples.
///
/// # Errors
/// [`PrepError`] names the file or setting that is wrong. A `csv-images` table is read completely before anything is written.
pub fn prepare(
    benchmark: &Benchmark,
    data: &Path,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    match &benchmark.prep {
        None => Err(PrepError::NoPrepSection {
            benchmark: benchmark.name.clone(),
        }),
        Some(
            Prep::JpegImages(_)
            | Prep::DetectionImages(_)
            | Prep::LetterboxImages(_)
            | Prep::Volumes(_)
            | Prep::Speech(_),
        ) => {
            let request = ImageRequest {
                benchmark,
                form: benchmark.form(),
                quantised: None,
                data,
                labels: None,
                calibration: None,
                accepts_damaged: false,
            };
            prepare_images(&request, out, progress)
        }
        Some(Prep::Squad(kind)) => squad::prepare(benchmark, kind, data, out, progress),
        Some(Prep::Published { files }) => published::prepare(benchmark, files, data, out, progress),
        Some(Prep::Arrays {}) => arrays::prepare(benchmark, data, out, progress),
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

/// Checks that a benchmark's file fits the preparation kind `csv-images`.
fn check_csv_images(benchmark: &Benchmark, divisor: f32) -> Result<(), PrepError> {
    let one = Form::new(Dtype::Float32, Layout::Linear);
    let reason = if benchmark.form() != one || !benchmark.model.further_inputs.is_empty() {
        format!(
            "csv-images makes {one} samples of one input, not {}",
            benchmark.form()
        )
    } else if !divisor.is_normal() {
        format!("pixels cannot be divided by {divisor}")
    } else {
        return Ok(());
    };
    Err(PrepError::UnsupportedSettings {
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
    let expected = benchmark.dataset.total_samples;
    let images = csv_images::read(table, skip_rows, shape.iter().product(), expected)?;
    let found = images.len();
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
    let map = MapFile::new(benchmark, out, &map_text)?;
    let mut writer = SampleWriter::new(benchmark, out)?;
    for (index, image) in images.iter().enumerate() {
        let values = image.pixels.iter().map(|pixel| pixel / divisor);
        let data: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
        writer.write(&format!("{stem}_{}", image.row), &data)?;
        progress(index + 1, found);
    }
    Ok(PrepReport {
        samples: found,
        unchanged: writer.unchanged,
        clipped: 0,
        damaged: Vec::new(),
        dir: writer.finish(benchmark, None)?,
        map: map.finish()?,
    })
}

/// Returns the table's name up to its first dot, without spaces, because a map separates its columns by spaces.
fn stem(table: &Path) -> String {
    let name = table.file_name().unwrap_or_default().to_string_lossy();
    name.split('.')
        .next()
        .unwrap_or_default()
        .replace(char::is_whitespace, "_")
}
