//! Whisper from the published form of its dataset to a staged tree: utterances with transcripts, samples, runs on the CPU with the official
//! LoadGen, word error rate by Regatta and by a script, the audit, and staging. The dataset is made up and small, and so are the networks.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    path::Path,
};

use regatta_test_support::{official_loadgen, oracle};
use regatta_tests::{
    mlperf_benchmark::responses,
    small_whisper,
    whole_way::{WholeWay, WholeWayCase},
};
use regatta_types::benchmark::ENGLISH_SYMBOLS;
use serde_json::Value;

const CLIPS: usize = 7;
const CASE: WholeWayCase = WholeWayCase {
    benchmark: "whisper",
    model: "whisper",
    // The first round with Whisper.
    round: "v5.1",
    scenarios: &["Offline"],
    samples: CLIPS,
    queries: ["min_query_count=7", "min_query_count=7"],
    setting: "batch_size=3",
    metric: "1-WER",
    script: ["whisper", "wer.py"],
};

/// Returns the text of a response in hexadecimal.
fn text(response: &str) -> String {
    let symbol = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    let shown = response
        .as_bytes()
        .chunks(2)
        .map(|pair| char::from(ENGLISH_SYMBOLS[usize::from(symbol(pair))]));
    shown.collect()
}

/// Makes the found texts the transcripts, with one word more.
fn transcribe(dataset: &Path, found: &BTreeMap<u64, String>) {
    for (index, response) in found {
        let set = ["dev-clean", "dev-other"][usize::from(index % 2 == 1)];
        let (speaker, chapter) = (100 + index, 200 + index);
        let name = format!("{speaker}-{chapter}");
        let found = text(response).to_uppercase();
        let further = match (*index, found.trim()) {
            (0, _) => " ELSE",
            // Each utterance has a word. The normaliser removes this one.
            (_, "") => "UM",
            _ => "",
        };
        let line = format!("{name}-0000 {found}{further}\n");
        let path = dataset.join(format!("{set}/{speaker}/{chapter}/{name}.trans.txt"));
        fs::write(path, line).unwrap();
    }
}

/// Checks that LoadGen got the number of tokens of each response, and that streams of a batch end at different times. LoadGen calls a
/// response of one token an error.
fn check_token_counts(log: &Path) {
    let entries: Vec<Value> = serde_json::from_str(&fs::read_to_string(log).unwrap()).unwrap();
    let counts: BTreeSet<i64> = entries
        .iter()
        .map(|entry| entry["token_count"].as_i64().unwrap())
        .collect();
    let is_possible = counts.iter().all(|count| (2..=24).contains(count));
    assert!(is_possible && counts.len() > 2, "{counts:?}");
}

/// Returns the line that the script prints.
fn line(judged: &Value) -> String {
    let accuracy = judged["value"].as_f64().unwrap();
    assert!(accuracy < 100.0, "one word differs");
    format!("%, accuracy={accuracy}%\n")
}

#[test]
fn whisper_from_utterances_to_a_staged_tree() {
    let (Some(python), Some(normalizer)) = (oracle::librispeech(), oracle::whisper()) else {
        return;
    };
    let Some(plugin) = official_loadgen::plugin_file("5.1.2") else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let (checkpoint, networks) = (place.path().join("checkpoint"), place.path().join("networks"));
    let run = |script: &str, words: &[&OsStr]| oracle::run(&python, "whisper", script, words);
    // With these weights, no response ends with its first token.
    run(
        "speech.py",
        &["checkpoint".as_ref(), checkpoint.as_os_str(), "57".as_ref()],
    );
    let positions: [&OsStr; 2] = ["--positions".as_ref(), "27".as_ref()];
    let words = [&positions[..], &[checkpoint.as_os_str(), networks.as_os_str()]].concat();
    run("../../../tools/export-whisper", &words);
    let network = |name: &str| fs::read(networks.join(name)).unwrap();
    let encoder = ("models/whisper/encoder.onnx", network("encoder.onnx"));
    let Some(mut way) = WholeWay::new(
        CASE,
        normalizer.clone(),
        |text| small_whisper::resized(text, CLIPS),
        encoder,
    ) else {
        return;
    };
    for name in ["decoder.onnx", "tokens.txt"] {
        way.add_network((&format!("models/whisper/{name}"), network(name)));
    }
    let spellings = oracle::run(&normalizer, "whisper", "words.py", &[]);
    let to = way.lab.scratch().join("data/whisper/english.json");
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(spellings.trim(), to).unwrap();
    let data = way.lab.workspace().join("LibriSpeech");
    run("speech.py", &["dataset".as_ref(), data.as_os_str()]);
    way.prepare(&data);
    way.start(Some(&plugin));
    let found = responses(&way.lab.accuracy_log(&way.first_run()));
    assert_eq!(found.len(), CLIPS);
    transcribe(&data, &found);
    way.prepare_again(&data);

    let (accuracy, printed) = way.measure_scenario("Offline", line);
    let log = way.lab.accuracy_log(&accuracy);
    assert_eq!(responses(&log), found);
    check_token_counts(&log);
    way.audit(&["TEST01"]);
    way.stage(&printed);
}
