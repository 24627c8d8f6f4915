//! Installs the bundled dataset and model below a scratch directory, and prepares their samples.

use std::{fs, path::Path};

use regatta_datasets::bundled::{file, raw_file};
use regatta_types::benchmark::{Benchmark, Prep};

use crate::{
    atomic,
    error::PrepError,
    prepare::{prepare, raw_data_dir},
    report::PrepReport,
};

/// Installs model, dataset and samples of `benchmark` below `scratch`. A second call changes nothing. A model or dataset
/// that is not bundled must exist there already.
///
/// # Errors
/// [`PrepError::NotBundled`] for a file that is neither bundled nor there; otherwise the errors of [`prepare`].
pub fn install_bundled(
    benchmark: &Benchmark,
    scratch: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let data = raw_data_dir(benchmark, scratch);
    install_file(scratch, &benchmark.model.file)?;
    if let Some(Prep::CsvImages { source, .. }) = &benchmark.prep {
        install_file(scratch, &raw_file(benchmark, source))?;
    }
    prepare(benchmark, &data, scratch, progress)
}

fn install_file(scratch: &Path, name: &str) -> Result<(), PrepError> {
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
