//! Published articles are checked and copied, and the ROUGE of summaries equals what the reference's script prints.
//!
//! `tests/oracles/summaries` makes articles, tokenizers and logs. With `REGATTA_INFERENCE` set to a checkout of mlcommons/inference, the
//! reference's own script computes the figures, otherwise its steps do.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{error::Error, ffi::OsStr, fmt::Write as _, fs, path::Path};

use regatta_accuracy::{LabelType, measure};
use regatta_catalogue::known;
use regatta_prep::{PrepError, PrepReport, prepare, verify_samples};
use regatta_test_support::oracle;
use regatta_types::{
    benchmark::{Benchmark, Prep},
    samples::SampleSet,
};

/// The articles of the oracle.
const ARTICLES: usize = 1500;

fn named(name: &str) -> Benchmark {
    let found = known::benchmarks().unwrap();
    found
        .into_iter()
        .find(|benchmark| benchmark.name == name)
        .unwrap()
}

/// Returns llama3.1-8b-edge for the oracle's articles, with one of its tokenizers.
fn llama(tokenizer: &str) -> Benchmark {
    let mut benchmark = named("llama3.1-8b-edge");
    benchmark.dataset.total_samples = ARTICLES;
    let Some(Prep::Published { files }) = &mut benchmark.prep else {
        unreachable!("the articles are published")
    };
    files[0].name = "summaries.json".to_owned();
    let summaries = benchmark.accuracy.summaries.as_mut().unwrap();
    summaries.expected = format!("{}/summaries.json", benchmark.dataset.dir);
    tokenizer.clone_into(&mut summaries.tokenizer);
    "english".clone_into(&mut summaries.sentences);
    benchmark
}

fn made(benchmark: &Benchmark, place: &Path) -> Result<PrepReport, PrepError> {
    prepare(benchmark, place, place, &mut |_, _| {})
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
fn rouge_is_that_of_the_script_for_both_tokenizers_and_widths() {
    let Some(python) = oracle::summaries() else { return };
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    oracle::run(&python, "summaries", "make_summaries.py", &[place.as_os_str()]);
    for (tokenizer, log, dtype, word) in [
        ("fast", "fast.json", None, "int32"),
        ("slow", "slow.json", Some(LabelType::Int32), "int32"),
        ("slow", "wide.json", Some(LabelType::Int64), "int64"),
    ] {
        let benchmark = llama(tokenizer);
        made(&benchmark, place).unwrap();
        let [log, articles, tokenizer] = [log, "summaries.json", tokenizer].map(|name| place.join(name));
        let found = measure(&benchmark, dtype, &log, place).unwrap();
        let figure = &found.figure;
        assert_eq!(
            (figure.total(), figure.missing().len(), figure.duplicates()),
            (1490, 10, 5)
        );
        let options: [&OsStr; 8] = [
            "--mlperf-accuracy-file".as_ref(),
            log.as_ref(),
            "--dataset-file".as_ref(),
            articles.as_ref(),
            "--dtype".as_ref(),
            word.as_ref(),
            "--model-name".as_ref(),
            tokenizer.as_ref(),
        ];
        let printed = oracle::run(&python, "summaries", "evaluation.py", &options);
        assert_eq!(printed.lines().last(), Some(figure.to_string().as_str()));
        // The figures are far from trivial.
        assert!(
            figure.further().iter().all(|(_, value)| *value > 20.0),
            "{figure}"
        );
    }
    let benchmark = llama("slow");
    let error = measure(
        &benchmark,
        Some(LabelType::Int64),
        &place.join("slow.json"),
        place,
    )
    .unwrap_err();
    assert!(chain(&error).contains("hint: --dtype int32"), "{}", chain(&error));
    let error = measure(&benchmark, Some(LabelType::Byte), &place.join("slow.json"), place).unwrap_err();
    assert!(error.to_string().contains("--dtype int32 or int64"), "{error}");
    fs::remove_file(place.join("english/abbrev_types.txt")).unwrap();
    let error = measure(&benchmark, None, &place.join("slow.json"), place).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("hint: unpack packages/tokenizers/punkt_tab.zip"),
        "{error}"
    );
}

#[test]
fn published_files_are_copied_once_and_verified() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let benchmark = llama("fast");
    let record = r#"{"input": "a", "tok_input": [1], "output": "b"}"#;
    let text = format!("[{}]", vec![record; ARTICLES].join(","));
    fs::write(place.join("summaries.json"), &text).unwrap();
    let report = made(&benchmark, place).unwrap();
    assert_eq!((report.samples, report.unchanged), (ARTICLES, 0));
    assert_eq!(
        fs::read_to_string(report.dir.join("summaries.json")).unwrap(),
        text
    );
    assert_eq!(made(&benchmark, place).unwrap().unchanged, ARTICLES);
    let verify = || verify_samples(&report.dir, None, &mut |_, _| {}).unwrap();
    assert!(verify().is_equal());
    fs::write(report.dir.join("summaries.json"), "[]").unwrap();
    assert_eq!(verify().differing, ["summaries.json"]);
}

#[test]
fn other_files_than_the_published_ones_are_refused_before_anything_is_written() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let refused = |benchmark: &Benchmark, expected: &str| {
        let error = made(benchmark, place).unwrap_err();
        let text = chain(&error);
        assert!(text.contains(expected), "{text}");
        let dir = place.join(&benchmark.dataset.dir);
        assert!(!dir.join(SampleSet::FILE).exists() && !dir.join(SampleSet::UNFINISHED).exists());
    };
    let llama = llama("fast");
    refused(&llama, "cannot read");
    let write = |text: &str| fs::write(place.join("summaries.json"), text).unwrap();
    write("{}");
    refused(&llama, "it is not a JSON array of objects");
    write(r#"[{"input": 1, "tok_input": 2, "output": 3}, {"input": 1, "output": 3}]"#);
    refused(&llama, "the record 2 has no `tok_input`");
    write(r#"[{"input": 1, "tok_input": 2, "output": 3}]"#);
    refused(&llama, "has 1 records, but benchmark llama3.1-8b-edge has 1500");

    let mut images = named("stable-diffusion-xl");
    images.dataset.total_samples = 2;
    let names = "id\timage_id\tcaption\theight\twidth\tfile_name\tcoco_url\n";
    let write = |text: &str| fs::write(place.join("captions_source.tsv"), text).unwrap();
    write("id\tcaption\n");
    refused(&images, "its first line names no column `image_id`");
    write(&format!("{names}1\t2\tA cat.\t4\t5\t6.jpg\n"));
    refused(&images, "line 2 has 6 columns instead of 7");
    let row = "1\t2\tA cat.\t4\t5\t6.jpg\thttp://7\n";
    write(&format!("{names}{row}"));
    refused(&images, "has 1 records");
    write(&format!("{names}{row}{row}"));
    refused(&images, "the published one 2eeb95637b30");
}
