//! The preparation kind `speech`: utterances in FLAC, as LibriSpeech publishes them, become one array of padded waveforms and one of their
//! lengths, with the values that the reference reads. The transcripts are beside the arrays. Computes no features: that is measured.

mod source;
mod transcripts;

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use regatta_datasets::{
    label_files::transcripts_file,
    speech::{FlacFile, SpeechError},
};
use regatta_fsutil::{atomic_file::AtomicFile, hash::hex};
use regatta_types::{
    benchmark::{Benchmark, Dtype, Speech},
    documents::Document as _,
    layout::Layout,
    samples::{Form, SampleSet},
};
use sha2::{Digest as _, Sha256};

pub(crate) use self::source::open;
use self::{source::Utterance, transcripts::manifest};
use crate::{
    atomic,
    conversion::push_element,
    error::PrepError,
    in_order::in_order,
    jpeg_images::ImageRequest,
    npy,
    report::PrepReport,
    samples::{begin, write_document, write_manifest},
};

/// Makes the arrays of a benchmark from the utterances that `request` names. `target` is the benchmark in the requested form.
pub(crate) fn prepare(
    request: &ImageRequest<'_>,
    kind: &Speech,
    mut target: Benchmark,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, PrepError> {
    let (names, row) = array_names(&target)?;
    let utterances = open(request, kind)?;
    let total = utterances.len();
    target.dataset.total_samples = total;
    let dir = out.join(&target.dataset.dir);
    // Read before it is replaced, to report whether the arrays have changed.
    let before = fs::read(dir.join(SampleSet::FILE)).ok();
    begin(&dir)?;
    let waveforms = Waveforms {
        utterances: &utterances,
        kind,
        dtype: target.model.input_dtype,
        row,
    };
    let hash = waveforms.write(&dir.join(&names[0]), progress)?;
    let lengths: Vec<u8> = utterances
        .iter()
        .flat_map(|utterance| (utterance.values as i32).to_le_bytes())
        .collect();
    write(
        &dir.join(&names[1]),
        &npy::array(Dtype::Int32.numpy(), &[total], &lengths),
    )?;
    let map = out.join(transcripts_file(request.benchmark).unwrap_or_default());
    if request.calibration.is_none() {
        let text = manifest(&utterances, kind).map_err(|source| PrepError::Write {
            path: map.clone(),
            source,
        })?;
        write(&map, &text)?;
    }
    write_manifest(&dir, &names)?;
    let hashes = [hash, hex(&Sha256::digest(&lengths))];
    write_document(&target, &dir, &hashes, None)?;
    let same = before
        .and_then(|before| SampleSet::from_json(&before).ok())
        .is_some_and(|before| before.tensors.iter().map(|tensor| &tensor.sha256).eq(&hashes));
    Ok(PrepReport {
        samples: total,
        unchanged: if same { total } else { 0 },
        clipped: 0,
        damaged: Vec::new(),
        dir,
        map,
    })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), PrepError> {
    let written = atomic::write(path, bytes).map(drop);
    written.map_err(|source| PrepError::Write {
        path: path.to_owned(),
        source,
    })
}

/// Checks that the model has an input for waveforms and one for lengths. Returns the names of their arrays, and the values of a row.
fn array_names(target: &Benchmark) -> Result<(Vec<String>, usize), PrepError> {
    let inputs: Vec<_> = target.model.inputs().collect();
    let named = inputs
        .iter()
        .map(|input| Some(format!("{}.npy", input.name?)))
        .collect::<Option<Vec<String>>>();
    let is_float =
        |form: Form| form.layout == Layout::Linear && matches!(form.dtype, Dtype::Float32 | Dtype::Float16);
    match (named, &inputs[..]) {
        (Some(names), [waveform, length])
            if is_float(target.form())
                && waveform.shape.len() == 1
                && i32::try_from(waveform.shape[0]).is_ok()
                && length.shape.is_empty()
                && length.dtype == Dtype::Int32 =>
        {
            Ok((names, waveform.shape[0]))
        }
        _ => Err(PrepError::UnsupportedSettings {
            benchmark: target.name.clone(),
            reason: "speech makes two named inputs: waveforms of fp32 or fp16 with one dimension, and lengths of int32 without one"
                .to_owned(),
        }),
    }
}

/// The array of padded waveforms.
struct Waveforms<'a> {
    utterances: &'a [Utterance],
    kind: &'a Speech,
    dtype: Dtype,
    /// The values of a row.
    row: usize,
}

impl Waveforms<'_> {
    /// Writes the array row by row, because all of it may not fit into memory. Returns the SHA-256 of its data.
    fn write(&self, path: &Path, progress: &mut dyn FnMut(usize, usize)) -> Result<String, PrepError> {
        let total = self.utterances.len();
        let mut hash = Sha256::new();
        let mut failed = None;
        let written = AtomicFile::new(path).unflushed().write_with(|to| {
            to.write_all(&npy::header(self.dtype.numpy(), &[total, self.row]))?;
            let mut written = Ok(());
            let made = in_order(
                total,
                |index| self.row(&self.utterances[index]),
                |index, row: Vec<u8>| {
                    // A full disk is reported once, after the rows that are being made.
                    if written.is_ok() {
                        hash.update(&row);
                        written = to.write_all(&row);
                        progress(index + 1, total);
                    }
                },
            );
            written?;
            made.map_err(|error| {
                failed = Some(error);
                io::Error::other("an utterance cannot be decoded")
            })
        });
        match (failed, written) {
            (Some(error), _) => Err(error.into()),
            (None, Err(source)) => Err(PrepError::Write {
                path: path.to_owned(),
                source,
            }),
            (None, Ok(())) => Ok(hex(&hash.finalize())),
        }
    }

    /// Decodes an utterance and pads it with zeros.
    fn row(&self, utterance: &Utterance) -> Result<Vec<u8>, SpeechError> {
        let len = self.row * self.dtype.size();
        let mut row = Vec::with_capacity(len);
        let pause = self.kind.clips.as_ref().map_or(0, |clips| clips.pause);
        for (number, path) in utterance.paths.iter().enumerate() {
            if number > 0 {
                row.resize(row.len() + pause * self.dtype.size(), 0);
            }
            let file = FlacFile::open(path, self.kind.sample_rate)?;
            file.decode(path, |value| {
                push_element(value, self.dtype, None, &mut row);
            })?;
        }
        row.resize(len, 0);
        Ok(row)
    }
}
