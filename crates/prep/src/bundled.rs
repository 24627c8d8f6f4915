//! The dataset and model that come with the program, so that a first run needs no download and no checkout.
//!
//! Files are found by their path below the scratch directory, which the benchmark's file gives; no benchmark is known
//! here by name. Source, licence (CC BY 4.0) and training stand in `datasets/digits/README.md`.

use std::{fs, path::Path};

use regatta_rules::benchmark::{Benchmark, Prep};

use crate::{
    atomic,
    error::PrepError,
    prepare::{PrepReport, prepare, raw_data_dir},
};

/// Path below the scratch directory, and content.
const FILES: &[(&str, &[u8])] = &[
    (
        "data/digits/digits.csv.gz",
        include_bytes!("../../../datasets/digits/digits.csv.gz"),
    ),
    (
        "models/digits/digits.onnx",
        include_bytes!("../../../datasets/digits/digits.onnx"),
    ),
];

/// The content of a bundled file, by its path below the scratch directory.
#[must_use]
pub fn file(path: &str) -> Option<&'static [u8]> {
    FILES
        .iter()
        .find(|(name, _)| *name == path)
        .map(|(_, content)| *content)
}

/// Whether the model and the data of `benchmark` come with the program: not those of a user's own benchmark that is made
/// after a bundled one.
#[must_use]
pub fn holds(benchmark: &Benchmark) -> bool {
    let has_data = match &benchmark.prep {
        Some(Prep::CsvImages { source, .. }) => file(&raw_file(benchmark, source)).is_some(),
        _ => true,
    };
    has_data && file(&benchmark.model.file).is_some()
}

/// Where a file of the data set as published lies below the scratch directory.
fn raw_file(benchmark: &Benchmark, source: &str) -> String {
    format!("data/{}/{source}", benchmark.name)
}

/// Lays out model, dataset and samples of `benchmark` below `scratch`. Doing so again changes nothing; a model or a
/// dataset that is not bundled must lie there already.
///
/// # Errors
/// [`PrepError::NotBundled`] for a file that neither is bundled nor lies there; else see [`prepare`].
pub fn install(
    benchmark: &Benchmark,
    scratch: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let data = raw_data_dir(benchmark, scratch);
    put(scratch, &benchmark.model.file)?;
    if let Some(Prep::CsvImages { source, .. }) = &benchmark.prep {
        put(scratch, &raw_file(benchmark, source))?;
    }
    prepare(benchmark, &data, scratch, progress)
}

fn put(scratch: &Path, name: &str) -> Result<(), PrepError> {
    let path = scratch.join(name);
    let Some(content) = file(name) else {
        return if path.is_file() {
            Ok(())
        } else {
            Err(PrepError::NotBundled {
                file: name.to_owned(),
            })
        };
    };
    let dir = path.parent().unwrap_or(scratch);
    fs::create_dir_all(dir).map_err(|source| PrepError::Write {
        path: dir.to_owned(),
        source,
    })?;
    atomic::write(&path, content)
        .map(drop)
        .map_err(|source| PrepError::Write { path, source })
}
