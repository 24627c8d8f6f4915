//! Tokens of captions equal those of the tokenizers that the reference of Stable Diffusion XL calls. Other captions get one sentence, and leave
//! nothing that looks complete.
//!
//! `tests/oracles/clip` installs the tokenizer and makes captions. With `REGATTA_INFERENCE` set to a checkout of mlcommons/inference, the published
//! captions are compared, too.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use npyz::NpyFile;
use regatta_catalogue::known;
use regatta_prep::{prepare, verify_samples};
use regatta_test_support::oracle;
use regatta_types::{
    benchmark::{Benchmark, Prep, PublishedFile},
    samples::SampleSet,
};

const LENGTH: usize = 77;
const TABLE: &str = "captions_source.tsv";

fn published() -> Benchmark {
    let mut found = known::benchmarks().unwrap();
    found.retain(|benchmark| benchmark.name == "stable-diffusion-xl");
    found.remove(0)
}

fn files(benchmark: &mut Benchmark) -> &mut [PublishedFile] {
    let Some(Prep::Published { files }) = &mut benchmark.prep else {
        unreachable!("the captions are published")
    };
    files
}

/// Returns the benchmark for any table with this number of captions.
fn of_captions(captions: usize) -> Benchmark {
    let mut benchmark = published();
    benchmark.dataset.total_samples = captions;
    files(&mut benchmark)[0].sha256 = None;
    benchmark
}

fn tokens(path: &Path) -> Vec<i32> {
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

/// Compares the arrays that preparation makes of the table in `place` with those of the reference.
fn compare(benchmark: &Benchmark, python: &Path, place: &Path) -> PathBuf {
    let expected = place.join("expected");
    fs::create_dir_all(&expected).unwrap();
    let table = place.join(TABLE);
    oracle::run(
        python,
        "clip",
        "tokens.py",
        &["tokens".as_ref(), table.as_ref(), expected.as_ref()],
    );
    let report = prepare(benchmark, place, place, &mut |_, _| {}).unwrap();
    for name in ["input_ids.npy", "input_ids_2.npy"] {
        let (ours, theirs) = (tokens(&report.dir.join(name)), tokens(&expected.join(name)));
        assert_eq!(ours.len(), benchmark.dataset.total_samples * LENGTH);
        for (index, (ours, theirs)) in ours.chunks(LENGTH).zip(theirs.chunks(LENGTH)).enumerate() {
            assert_eq!(ours, theirs, "{name}, caption {index}");
        }
        assert_eq!(ours.len(), theirs.len());
    }
    report.dir
}

#[test]
fn tokens_are_those_of_both_tokenizers_of_the_reference() {
    let Some(python) = oracle::clip() else { return };
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    for command in ["merges", "captions"] {
        oracle::run(&python, "clip", "tokens.py", &[command.as_ref(), place.as_ref()]);
    }
    let captions = fs::read_to_string(place.join(TABLE)).unwrap().lines().count() - 1;
    let benchmark = of_captions(captions);
    let dir = compare(&benchmark, &python, place);
    // The first caption is the negative prompt of the benchmark's file.
    let negative = &benchmark.model.diffusion.as_ref().unwrap().negative_prompt;
    let first = tokens(&dir.join("input_ids_2.npy"));
    assert_eq!(first[..negative.len()], negative[..]);
    assert!(first[negative.len()..LENGTH].iter().all(|token| *token == 0));
    assert!(SampleSet::check_whole(&dir).is_ok());
    let again = prepare(&benchmark, place, place, &mut |_, _| {}).unwrap();
    assert_eq!(again.unchanged, captions);
    assert!(verify_samples(&dir, None, &mut |_, _| {}).unwrap().is_equal());
}

#[test]
fn tokens_of_the_published_captions_are_those_of_the_reference() {
    let Some(checkout) = env::var_os("REGATTA_INFERENCE").map(PathBuf::from) else {
        return;
    };
    let Some(python) = oracle::clip() else { return };
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    fs::copy(
        checkout.join("text_to_image/coco2014/captions").join(TABLE),
        place.join(TABLE),
    )
    .unwrap();
    oracle::run(&python, "clip", "tokens.py", &["merges".as_ref(), place.as_ref()]);
    compare(&published(), &python, place);
}

#[test]
fn captions_that_the_reference_might_change_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let mut benchmark = of_captions(2);
    files(&mut benchmark)[1].sha256 = None;
    let names = "id\timage_id\tcaption\theight\twidth\tfile_name\tcoco_url\n";
    let write = |caption: &str| {
        let row = |caption: &str| format!("1\t2\t{caption}\t4\t5\t6.jpg\thttp://7\n");
        fs::write(
            place.join(TABLE),
            format!("{names}{}{}", row("a b"), row(caption)),
        )
        .unwrap();
    };
    let refused = |benchmark: &Benchmark, expected: &str| {
        let error = prepare(benchmark, place, place, &mut |_, _| {}).unwrap_err();
        let text = chain(&error);
        assert!(text.contains(expected), "{text}");
        assert!(!place.join(&benchmark.dataset.dir).join(SampleSet::FILE).exists());
    };
    fs::write(place.join("merges.txt"), "#version: 0.2\na b</w>\n").unwrap();
    write("a b");
    refused(
        &benchmark,
        "the merges make 515 tokens, but `vocabulary` is 49408",
    );
    benchmark.model.diffusion.as_mut().unwrap().vocabulary = 515;
    for (caption, expected) in [
        ("a caf\u{e9}", "the caption of record 2 has the character 'é'"),
        ("wow!", "the caption of record 2 has the character '!'"),
        ("a <|endoftext|>", "the caption of record 2 has a special token"),
        (
            "black &amp; white",
            "the caption of record 2 has an entity of HTML",
        ),
        (
            "\"a\" b",
            "the caption of record 2 has an unclosed quote, or text after its closing quote",
        ),
    ] {
        write(caption);
        refused(&benchmark, expected);
    }
    write("a \"b\"");
    fs::write(place.join("merges.txt"), "#version: 0.2\na b</w>\nab\n").unwrap();
    refused(&benchmark, "line 3 is not a pair of tokens");
    let mut without_merges = benchmark.clone();
    files(&mut without_merges)[0].captions.as_mut().unwrap().merges = "other.txt".to_owned();
    refused(&without_merges, "need the published file that `merges` names");
    let mut without_diffusion = benchmark.clone();
    without_diffusion.model.diffusion = None;
    refused(
        &without_diffusion,
        "captions are for models with [model.diffusion]",
    );
}
