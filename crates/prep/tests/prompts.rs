//! The prompts of GPT-J are those that the reference makes with transformers.
//!
//! `tests/oracles/summaries` trains a small tokenizer of GPT-2's form, and has the reference's steps.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{error::Error, fmt::Write as _, fs, path::Path};

use npyz::NpyFile;
use regatta_catalogue::known;
use regatta_prep::{PrepError, PrepReport, prepare};
use regatta_test_support::oracle;
use regatta_types::benchmark::{Benchmark, Prep, PublishedFile};
use serde_json::{Value, json};

const LONGEST: usize = 400;

/// Returns gptj-99 for a number of articles, with shorter prompts.
fn gptj(articles: usize) -> Benchmark {
    let mut found = known::benchmarks().unwrap().into_iter();
    let mut benchmark = found.find(|benchmark| benchmark.name == "gptj-99").unwrap();
    benchmark.dataset.total_samples = articles;
    benchmark.model.input_shape = vec![LONGEST];
    benchmark
}

fn articles() -> Value {
    let article = |input: &str| json!({ "instruction": "Summarize the following news article:", "input": input, "output": "x" });
    let long = "The company's shares didn't fall in 2019, they rose by 3.5%! ".repeat(40);
    json!([
        article(
            "LONDON, England (Reuters) -- Harry Potter star Daniel Radcliffe gains access to a reported £20 million.\n\nHe's 18."
        ),
        article("“Café” owners in Zürich say:   spaces,\ttabs { braces } and 東京."),
        article(&long),
    ])
}

fn made(benchmark: &Benchmark, place: &Path) -> Result<PrepReport, PrepError> {
    prepare(benchmark, place, place, &mut |_, _| {})
}

fn array(path: &Path) -> Vec<i32> {
    NpyFile::new(&fs::read(path).unwrap()[..])
        .unwrap()
        .into_vec()
        .unwrap()
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

#[test]
fn prompts_of_gptj_are_those_of_the_reference() {
    let Some(python) = oracle::summaries() else { return };
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let data = place.join("cnn_eval.json");
    fs::write(&data, articles().to_string()).unwrap();
    // The tokenizer is trained on the articles.
    let texts = place.join("texts.json");
    let inputs: Vec<Value> = articles()
        .as_array()
        .unwrap()
        .iter()
        .map(|article| article["input"].clone())
        .collect();
    fs::write(&texts, json!(inputs).to_string()).unwrap();
    oracle::run(
        &python,
        "summaries",
        "tokens.py",
        &[texts.as_os_str(), place.as_os_str()],
    );
    let tokenizer = place.join("models/gpt-j/tokenizer");
    fs::create_dir_all(tokenizer.parent().unwrap()).unwrap();
    fs::rename(place.join("gpt2"), &tokenizer).unwrap();

    let report = made(&gptj(3), place).map_err(|error| chain(&error)).unwrap();
    let longest = LONGEST.to_string();
    let expected = place.join("expected.json");
    let arguments = [
        data.as_os_str(),
        tokenizer.as_os_str(),
        longest.as_ref(),
        expected.as_os_str(),
    ];
    oracle::run(&python, "summaries", "prompts.py", &arguments);
    let expected: Vec<Vec<i32>> = serde_json::from_slice(&fs::read(expected).unwrap()).unwrap();
    let (ids, lengths) = (
        array(&report.dir.join("input_ids.npy")),
        array(&report.dir.join("input_lengths.npy")),
    );
    assert_eq!(lengths.len(), 3);
    for (index, expected) in expected.iter().enumerate() {
        let length = usize::try_from(lengths[index]).unwrap();
        let (prompt, padding) = ids[index * LONGEST..][..LONGEST].split_at(length);
        assert_eq!(prompt, expected, "prompt {index}");
        assert!(padding.iter().all(|id| *id == 0));
    }
    assert!(
        expected[0].len() < LONGEST && expected[2].len() == LONGEST,
        "one prompt is cut off"
    );
}

#[test]
fn prompts_that_cannot_be_made_get_one_sentence() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let data = place.join("cnn_eval.json");
    fs::write(&data, articles().to_string()).unwrap();
    let refused = |benchmark: &Benchmark, expected: &str| {
        let error = chain(&made(benchmark, place).unwrap_err());
        assert!(error.contains(expected), "{expected} in {error}");
        assert!(!place.join(&benchmark.dataset.dir).exists());
    };
    refused(&gptj(3), "cannot read the tokenizer");
    let tokenizer = place.join("models/gpt-j/tokenizer");
    fs::create_dir_all(&tokenizer).unwrap();
    let document = json!({
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false },
        "model": { "vocab": { "a": 0 }, "merges": [] },
    });
    fs::write(tokenizer.join("tokenizer.json"), document.to_string()).unwrap();
    refused(
        &gptj(3),
        "the prompt of record 1 cannot become tokens: the tokenizer has no token for the byte 0x42",
    );
    let mut without = gptj(3);
    without.accuracy.summaries = None;
    refused(
        &without,
        "`prompt_template` needs the tokenizer of `[accuracy.summaries]`",
    );
    let mut both = gptj(3);
    files_of(&mut both)[0].prompt_template = Some("{subject}".to_owned());
    refused(
        &both,
        "`subject` of record 1, which the prompt contains, is missing",
    );
    files_of(&mut both)[0].prompts = Some("tok_input".to_owned());
    refused(&both, "not both");
}

fn files_of(benchmark: &mut Benchmark) -> &mut [PublishedFile] {
    let Some(Prep::Published { files }) = &mut benchmark.prep else {
        unreachable!("the articles are published")
    };
    files
}
