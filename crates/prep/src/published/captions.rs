//! Converts captions in a table to the tokens of both text encoders, padded to the length of the model's inputs, as `coco.py` of the reference of
//! Stable Diffusion XL does.

use std::path::Path;

use regatta_types::benchmark::{Benchmark, CaptionInputs, PublishedFile};

use super::{
    PublishedError,
    clip_tokenizer::ClipTokenizer,
    error::{CaptionFault, RecordError},
    input_array::InputArray,
};
use crate::error::PrepError;

/// Returns the arrays of the captions, if a file has some.
pub(super) fn arrays(
    benchmark: &Benchmark,
    files: &[PublishedFile],
    contents: &[Vec<u8>],
    data: &Path,
) -> Result<Vec<InputArray>, PrepError> {
    let mut with_captions = files.iter().zip(contents);
    let Some((file, tokens, bytes)) =
        with_captions.find_map(|(file, bytes)| Some((file, file.captions.as_ref()?, bytes)))
    else {
        return Ok(Vec::new());
    };
    let merges = files
        .iter()
        .zip(contents)
        .find(|(other, _)| other.name == tokens.merges);
    let inputs = inputs(benchmark).zip(merges);
    let ((length, inputs), (_, merges)) = inputs.ok_or_else(|| PrepError::UnsupportedSettings {
        benchmark: benchmark.name.clone(),
        reason: "captions are for models with [model.diffusion] and two named `int32` inputs of one length of at least 2, and \
                 need the published file that `merges` names"
            .to_owned(),
    })?;
    let form_error = |file: &str, source| PublishedError::Form {
        path: data.join(file),
        source,
    };
    let tokenizer = ClipTokenizer::new(merges).map_err(|source| form_error(&tokens.merges, source))?;
    let vocabulary = benchmark
        .model
        .diffusion
        .as_ref()
        .map(|diffusion| diffusion.vocabulary);
    if vocabulary.and_then(|vocabulary| u32::try_from(vocabulary).ok()) != Some(tokenizer.size()) {
        let error = RecordError::Vocabulary {
            found: tokenizer.size(),
            expected: vocabulary.unwrap_or_default(),
        };
        return Err(form_error(&tokens.merges, error).into());
    }
    let captions = captions(bytes, &tokens.column).map_err(|source| form_error(&file.name, source))?;
    let mut texts = Vec::with_capacity(captions.len());
    for (index, caption) in captions.iter().enumerate() {
        let found = tokenizer
            .tokens(caption, length)
            .map_err(|fault| RecordError::Caption {
                record: index + 1,
                fault,
            });
        texts.push(found.map_err(|source| form_error(&file.name, source))?);
    }
    let array = |(name, padding): (&str, u32)| {
        let padded = texts.iter().flat_map(|text| {
            text.iter()
                .copied()
                .chain(std::iter::repeat_n(padding, length - text.len()))
        });
        let data = padded.flat_map(u32::to_le_bytes).collect();
        InputArray::of_tokens(name, &[texts.len(), length], data)
    };
    Ok(inputs.map(array).into())
}

/// Returns the length of a text, and the names of both inputs with their paddings.
fn inputs(benchmark: &Benchmark) -> Option<(usize, [(&str, u32); 2])> {
    let paddings = benchmark.model.diffusion.as_ref()?.paddings;
    let CaptionInputs { length, names } = benchmark.model.caption_inputs()?;
    let paddings = (u32::try_from(paddings[0]).ok()?, u32::try_from(paddings[1]).ok()?);
    (length >= 2).then_some((length, [(names[0], paddings.0), (names[1], paddings.1)]))
}

/// Returns the values of a column of a table with tabs, whose form was checked. Quotes are removed as the CSV dialect of
/// `pandas.read_csv` does; Python's `csv` is compared.
fn captions(bytes: &[u8], column: &str) -> Result<Vec<String>, RecordError> {
    let text = str::from_utf8(bytes).map_err(|_| RecordError::NotText)?;
    let mut lines = text.lines();
    let mut names = lines.next().unwrap_or_default().split('\t');
    let place = names
        .position(|name| name == column)
        .ok_or_else(|| RecordError::Column(column.to_owned()))?;
    let mut captions = Vec::new();
    for (index, line) in lines.enumerate() {
        let value = line.split('\t').nth(place).unwrap_or_default();
        captions.push(unquoted(value).ok_or(RecordError::Caption {
            record: index + 1,
            fault: CaptionFault::Quotes,
        })?);
    }
    Ok(captions)
}

/// Returns a value without the quotes around it. `None` if they do not end where the value does.
fn unquoted(value: &str) -> Option<String> {
    let Some(inner) = value.strip_prefix('"') else {
        return Some(value.to_owned());
    };
    let inner = inner.strip_suffix('"')?;
    let is_quoted = !inner.replace("\"\"", "").contains('"');
    is_quoted.then(|| inner.replace("\"\"", "\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_around_values_are_removed_and_unclosed_ones_refused() {
        assert_eq!(unquoted("a \"b\" c").as_deref(), Some("a \"b\" c"));
        assert_eq!(unquoted("\"says \"\"b\"\".\"").as_deref(), Some("says \"b\"."));
        assert_eq!(unquoted("\"\"").as_deref(), Some(""));
        for damaged in ["\"", "\"a", "\"a\" b", "\"a\"b\""] {
            assert_eq!(unquoted(damaged), None, "{damaged}");
        }
    }
}
