//! The preparation kind `squad`: questions about texts, as SQuAD 1.1 publishes them, become the token arrays of the reference's
//! `create_squad_data.py`. Questions and vocabulary are copied beside the samples, where the accuracy metric reads them.

use std::path::Path;

use regatta_datasets::{
    label_files::{squad_directory, squad_feature_cache},
    squad::{Passage, SquadError, SquadSource, Windows, lengths},
};
use regatta_fsutil::hash::hex;
use regatta_types::benchmark::{Benchmark, Dtype, Squad};
use sha2::{Digest as _, Sha256};

use crate::{
    atomic,
    error::PrepError,
    in_order::in_order,
    npy,
    report::PrepReport,
    samples::{begin, remove, write_document, write_manifest},
};

/// The arrays of a sample, in the order of the model's inputs.
const ARRAYS: usize = 3;

/// Makes the arrays of a benchmark from the questions in `data`, below the scratch directory `out`. `progress` counts samples.
pub(crate) fn prepare(
    benchmark: &Benchmark,
    kind: &Squad,
    data: &Path,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let names = array_names(benchmark)?;
    if !data.is_dir() {
        return Err(PrepError::NoDataset {
            benchmark: benchmark.name.clone(),
            dir: data.to_owned(),
        });
    }
    let source = SquadSource::read(kind, data, &benchmark.name)?;
    let arrays = tokenize(benchmark, kind, &source, progress)?;
    let dir = out.join(&benchmark.dataset.dir);
    begin(&dir)?;
    let samples = benchmark.dataset.total_samples;
    let shape = [samples, lengths(benchmark, kind).sequence];
    let (mut hashes, mut is_new) = (Vec::new(), false);
    for (name, data) in names.iter().zip(&arrays) {
        is_new |= write(&dir.join(name), &npy::array(Dtype::Int32.numpy(), &shape, data))?;
        hashes.push(hex(&Sha256::digest(data)));
    }
    let mut has_new_labels = false;
    let labels = out.join(squad_directory(benchmark));
    for (file, name) in source.files.iter().zip([&kind.questions, &kind.vocabulary]) {
        has_new_labels |= write(&labels.join(name), &file.bytes)?;
    }
    if has_new_labels {
        remove(&out.join(squad_feature_cache(benchmark)))?;
    }
    write_manifest(&dir, &names)?;
    write_document(benchmark, &dir, &hashes, None)?;
    Ok(PrepReport {
        samples,
        unchanged: if is_new { 0 } else { samples },
        clipped: 0,
        damaged: Vec::new(),
        dir,
        map: labels.join(&kind.questions),
    })
}

fn write(path: &Path, bytes: &[u8]) -> Result<bool, PrepError> {
    atomic::write(path, bytes).map_err(|source| PrepError::Write {
        path: path.to_owned(),
        source,
    })
}

/// Checks that the model has three inputs of token ids, and returns the names of their arrays.
fn array_names(benchmark: &Benchmark) -> Result<Vec<String>, PrepError> {
    let inputs: Vec<_> = benchmark.model.inputs().collect();
    let is_row = |input: &regatta_types::benchmark::ModelInput<'_>| {
        input.dtype == Dtype::Int32 && input.shape.len() == 1 && input.shape == inputs[0].shape
    };
    let names: Option<Vec<String>> = inputs
        .iter()
        .map(|input| Some(format!("{}.npy", input.name?)))
        .collect();
    match names {
        Some(names) if names.len() == ARRAYS && inputs.iter().all(is_row) => Ok(names),
        _ => Err(PrepError::UnsupportedSettings {
            benchmark: benchmark.name.clone(),
            reason: "squad makes three named inputs of int32 with one length: token ids, mask and segments"
                .to_owned(),
        }),
    }
}

/// Computes the arrays of all samples on all processors.
fn tokenize(
    benchmark: &Benchmark,
    kind: &Squad,
    source: &SquadSource,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<[Vec<u8>; ARRAYS], PrepError> {
    let (lengths, expected) = (lengths(benchmark, kind), benchmark.dataset.total_samples);
    let vocabulary = &source.vocabulary;
    let make = |index: usize| {
        let paragraph = &source.paragraphs[index];
        let passage = Passage::new(&paragraph.context, vocabulary);
        let (mut arrays, mut samples) = ([const { Vec::new() }; ARRAYS], 0_usize);
        for question in &paragraph.qas {
            let windows = Windows::new(&question.question, passage.tokens.len(), vocabulary, lengths);
            for &window in windows.all() {
                samples += 1;
                // More than all samples are an error; they need no memory.
                if samples <= expected {
                    windows.push_sample(window, &passage, vocabulary, lengths.sequence, &mut arrays);
                }
            }
        }
        Ok::<_, PrepError>((samples, arrays))
    };
    let (mut all, mut found) = ([const { Vec::new() }; ARRAYS], 0_usize);
    in_order(source.paragraphs.len(), make, |_, (samples, arrays)| {
        found = found.saturating_add(samples);
        for (all, array) in all.iter_mut().zip(arrays) {
            if found <= expected {
                all.extend(array);
            }
        }
        progress(found.min(expected), expected);
    })?;
    if found == expected {
        return Ok(all);
    }
    Err(SquadError::Samples {
        path: source.files[0].path.clone(),
        expected,
        found,
        benchmark: benchmark.name.clone(),
    }
    .into())
}
