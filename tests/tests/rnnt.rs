//! RNN-T from the published form of its dataset to a staged tree: utterances with transcripts, samples, runs on the CPU with the official
//! LoadGen, word error rate by Regatta and by a script, audits, and staging. The dataset is made up and small, and so are the networks.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{collections::BTreeMap, fs, path::Path};

use regatta_test_support::{official_loadgen, oracle};
use regatta_tests::{
    mlperf_benchmark::{replaced, responses},
    whole_way::{WholeWay, WholeWayCase},
};
use serde_json::Value;

const UTTERANCES: usize = 7;
/// The features of the networks' layers.
const HIDDEN: &str = "32";
const CASE: WholeWayCase = WholeWayCase {
    benchmark: "rnnt",
    model: "rnnt",
    // The last round with RNN-T.
    round: "v4.0",
    scenarios: &["SingleStream", "Offline"],
    samples: UTTERANCES,
    queries: ["min_query_count=7", "min_query_count=100"],
    setting: "batch_size=3",
    metric: "1-WER",
    script: ["librispeech", "wer.py"],
};

/// Resizes the benchmark to this dataset and these networks.
fn resized(text: String) -> String {
    let text = replaced(
        text,
        &[
            ("_samples = 2513", &format!("_samples = {UTTERANCES}")),
            ("utterances = 2703", &format!("utterances = {UTTERANCES}")),
            ("shape = [1024]", &format!("shape = [{HIDDEN}]")),
            ("shape = [320]", "shape = [24]"),
        ],
    );
    let (before, rest) = text.split_once("chapters = [").unwrap();
    let (_, after) = rest.split_once("]\n").unwrap();
    format!("{before}chapters = [\"2277/149896\"]\n{after}")
}

/// Returns the text of a response in hexadecimal.
fn text(response: &str) -> String {
    let symbol = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    let shown = |symbol: u8| b" ABCDEFGHIJKLMNOPQRSTUVWXYZ'"[usize::from(symbol)];
    let shown = response
        .as_bytes()
        .chunks(2)
        .map(|pair| char::from(shown(symbol(pair))));
    shown.collect()
}

/// Makes the found texts the transcripts, with one word more.
fn transcribe(dataset: &Path, found: &BTreeMap<u64, String>) {
    let lines = found.iter().map(|(index, response)| {
        let further = if *index == 0 { " ELSE" } else { "" };
        format!("2277-149896-{index:04} {}{further}\n", text(response))
    });
    let path = dataset.join("dev-clean/2277/149896/2277-149896.trans.txt");
    fs::write(path, lines.collect::<String>()).unwrap();
}

/// Returns the line that the script prints.
fn line(judged: &Value) -> String {
    let accuracy = judged["value"].as_f64().unwrap();
    assert!(accuracy < 100.0, "one word differs");
    format!("%, accuracy={accuracy}%\n")
}

#[test]
fn rnnt_from_utterances_to_a_staged_tree() {
    let Some(python) = oracle::librispeech() else {
        return;
    };
    let Some(plugin) = official_loadgen::plugin_of_package("4.0.1", "4.0") else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let (weights, networks) = (place.path().join("weights.npz"), place.path().join("networks"));
    let words = ["weights".as_ref(), weights.as_os_str(), HIDDEN.as_ref()];
    oracle::run(&python, "librispeech", "rnnt.py", &words);
    let words = [weights.as_os_str(), networks.as_os_str()];
    oracle::run(&python, "librispeech", "../../../tools/export-rnnt", &words);
    let network = |name: &str| fs::read(networks.join(name)).unwrap();
    let encoder = ("models/rnnt/encoder.onnx", network("encoder.onnx"));
    let Some(mut way) = WholeWay::new(CASE, python.clone(), resized, encoder) else {
        return;
    };
    for name in ["prediction.onnx", "joint.onnx"] {
        way.add_network((&format!("models/rnnt/{name}"), network(name)));
    }
    let data = way.lab.workspace().join("LibriSpeech");
    oracle::run(
        &python,
        "librispeech",
        "rnnt.py",
        &["dataset".as_ref(), data.as_os_str()],
    );
    way.prepare(&data);
    way.start(Some(&plugin));
    let found = responses(&way.lab.accuracy_log(&way.first_run()));
    assert_eq!(found.len(), UTTERANCES);
    transcribe(&data, &found);
    way.prepare_again(&data);

    let mut printed = String::new();
    for scenario in ["SingleStream", "Offline"] {
        let (accuracy, script_line) = way.measure_scenario(scenario, line);
        assert_eq!(responses(&way.lab.accuracy_log(&accuracy)), found, "{scenario}");
        printed = script_line;
    }
    way.audit(&["TEST01", "TEST05"]);
    way.stage(&printed);
}
