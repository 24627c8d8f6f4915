//! The preparation kind `published`: checks the files of a dataset and copies them as they are, where the accuracy metric and other
//! programs find them. The token ids of prompts, and those of captions, also become arrays, which engines read.

mod captions;
mod clip_tokenizer;
mod error;
mod input_array;
mod prompts;
mod records;

use std::path::Path;

use regatta_datasets::published_hash;
use regatta_fsutil::{hash::sha256_hex, regular_file};
use regatta_tokenizer::Tokenizer;
use regatta_types::benchmark::{Benchmark, PublishedFile};

pub use self::error::PublishedError;
use self::{input_array::InputArray, prompts::Prompts};
use crate::{
    atomic,
    error::PrepError,
    report::PrepReport,
    samples::{begin, write_document, write_manifest},
};

/// Larger files are not read: the largest has 57 MB.
const MAX: u64 = 1 << 30;

/// Checks the files of a benchmark in `data`, and copies them below the scratch directory `out`. All are checked before one is written.
pub(crate) fn prepare(
    benchmark: &Benchmark,
    files: &[PublishedFile],
    data: &Path,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    if !data.is_dir() {
        return Err(PrepError::NoDataset {
            benchmark: benchmark.name.clone(),
            dir: data.to_owned(),
        });
    }
    let read = |file: &PublishedFile| checked(file, data, benchmark);
    let contents: Vec<Vec<u8>> = files.iter().map(read).collect::<Result<_, _>>()?;
    let mut arrays = prompt_arrays(benchmark, files, &contents, data, out)?;
    arrays.extend(captions::arrays(benchmark, files, &contents, data)?);
    let dir = out.join(&benchmark.dataset.dir);
    begin(&dir)?;
    let samples = benchmark.dataset.total_samples;
    let mut is_new = false;
    for (index, (file, bytes)) in files.iter().zip(&contents).enumerate() {
        let path = dir.join(&file.name);
        is_new |= atomic::write(&path, bytes).map_err(|source| PrepError::Write { path, source })?;
        progress(samples * (index + 1) / files.len(), samples);
    }
    let mut hashes = Vec::new();
    for array in &arrays {
        let path = dir.join(&array.file);
        let bytes = [&array.header[..], &array.data].concat();
        is_new |= atomic::write(&path, &bytes).map_err(|source| PrepError::Write { path, source })?;
        hashes.push(sha256_hex(&array.data));
    }
    let names = files.iter().map(|file| &file.name);
    let names: Vec<String> = names
        .chain(arrays.iter().map(|array| &array.file))
        .cloned()
        .collect();
    write_manifest(&dir, &names)?;
    write_document(benchmark, &dir, &hashes, None)?;
    Ok(PrepReport {
        samples,
        unchanged: if is_new { 0 } else { samples },
        clipped: 0,
        damaged: Vec::new(),
        map: out.join(&benchmark.dataset.map),
        dir,
    })
}

/// Returns the arrays of the prompts, if a file has some.
fn prompt_arrays(
    benchmark: &Benchmark,
    files: &[PublishedFile],
    contents: &[Vec<u8>],
    data: &Path,
    scratch: &Path,
) -> Result<Vec<InputArray>, PrepError> {
    let mut with_prompts = files.iter().zip(contents);
    let Some((file, bytes)) =
        with_prompts.find(|(file, _)| file.prompts.is_some() || file.prompt_template.is_some())
    else {
        return Ok(Vec::new());
    };
    let unsupported = |reason: &str| PrepError::UnsupportedSettings {
        benchmark: benchmark.name.clone(),
        reason: reason.to_owned(),
    };
    let inputs = benchmark.model.prompt_inputs();
    let named = inputs.and_then(|inputs| Some((inputs.longest, [inputs.ids.name?, inputs.count.name?])));
    let (longest, names) = named.ok_or_else(|| {
        unsupported(
            "prompts are for models with two named inputs: `int32` token ids, and an `int32` with their number",
        )
    })?;
    let form = |source| PublishedError::Form {
        path: data.join(&file.name),
        source,
    };
    let read = match (&file.prompts, &file.prompt_template) {
        (Some(field), None) => Prompts::read(bytes, field, longest).map_err(form)?,
        (None, Some(template)) => {
            let path = benchmark.tokenizer_file().ok_or_else(|| {
                unsupported("`prompt_template` needs the tokenizer of `[accuracy.summaries]`")
            })?;
            let tokenizer = Tokenizer::read(&scratch.join(path)).map_err(PublishedError::Tokenizer)?;
            Prompts::of_template(bytes, template, &tokenizer, longest).map_err(form)?
        }
        _ => return Err(unsupported("a file has `prompts` or `prompt_template`, not both")),
    };
    Ok(read.arrays(names).into())
}

/// Reads a file and checks it. Checks what the file is before its hash, because that error is clearer.
fn checked(file: &PublishedFile, data: &Path, benchmark: &Benchmark) -> Result<Vec<u8>, PublishedError> {
    let path = data.join(&file.name);
    let bytes = match regular_file::read(&path, MAX) {
        Ok(bytes) => bytes,
        Err(source) => return Err(PublishedError::Read { path, source }),
    };
    if let Some(form) = file.records {
        let expected = benchmark.dataset.total_samples;
        let found = records::count(form, &bytes, &file.fields).map_err(|source| PublishedError::Form {
            path: path.clone(),
            source,
        })?;
        if found != expected {
            return Err(PublishedError::Records {
                path,
                found,
                expected,
                benchmark: benchmark.name.clone(),
            });
        }
    }
    published_hash::check(&path, &bytes, file.sha256.as_deref(), &benchmark.name)?;
    Ok(bytes)
}
