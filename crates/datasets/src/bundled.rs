//! The bundled dataset and model, with which a first run needs no download and no checkout.
//!
//! Files are found by their path below the scratch directory, which the benchmark's file contains. This file knows no
//! benchmark by name. `datasets/digits/README.md` has source, licence (CC BY 4.0) and training.

use regatta_types::benchmark::{Benchmark, Prep};

/// The bundled files: path below the scratch directory, and content.
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

/// Returns the content of a bundled file, by its path below the scratch directory.
#[must_use]
pub fn file(path: &str) -> Option<&'static [u8]> {
    FILES
        .iter()
        .find(|(name, _)| *name == path)
        .map(|(_, content)| *content)
}

/// Returns whether model and data of `benchmark` are bundled. Those of a user's benchmark with another name are not, even
/// if its file is a copy of a bundled one.
#[must_use]
pub fn contains(benchmark: &Benchmark) -> bool {
    let has_data = match &benchmark.prep {
        Some(Prep::CsvImages { source, .. }) => file(&raw_file(benchmark, source)).is_some(),
        _ => true,
    };
    has_data && file(&benchmark.model.file).is_some()
}

/// Returns the path of a file of the published dataset below the scratch directory.
pub fn raw_file(benchmark: &Benchmark, source: &str) -> String {
    format!("data/{}/{source}", benchmark.name)
}
