//! Tests BERT from the published form of its dataset to a staged tree. It makes samples of questions and vocabulary, runs on the
//! CPU with the official LoadGen, computes F1 by Regatta and by a script, audits and stages. The dataset is made up and small,
//! and so is the network.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{collections::BTreeMap, fs, path::Path};

use regatta_test_support::{official_loadgen, oracle, small_bert, tree};
use regatta_tests::{
    Broker, Lab,
    mlperf_benchmark::{replaced, responses},
    printed,
};
use serde_json::{Value, json};

const QUESTIONS: usize = 14;
/// How many questions accept the network's own answer: 93 %, above the target.
const RIGHT: usize = 13;
/// The official LoadGen, short: the round's 24,576 samples take a minute here.
const SHORT: [&str; 4] = ["--loadgen", "official", "--conf", "min_query_count=512"];

/// Resizes the benchmark to this dataset, whose questions and vocabulary are not the published ones.
fn resized(text: String, samples: usize, tokens: usize) -> String {
    let is_pinned =
        |line: &&str| line.starts_with("questions_sha256") || line.starts_with("vocabulary_sha256");
    assert_eq!(text.lines().filter(is_pinned).count(), 2);
    let lines: Vec<&str> = text.lines().filter(|line| !is_pinned(line)).collect();
    replaced(
        lines.join("\n"),
        &[
            ("_samples = 10833", &format!("_samples = {samples}")),
            (
                "vocabulary_tokens = 30522",
                &format!("vocabulary_tokens = {tokens}"),
            ),
        ],
    )
}

/// Accepts the network's answers to the first questions, and other words for the rest.
fn accept(questions: &Path, answers: &Value) {
    let mut document: Value = serde_json::from_str(&fs::read_to_string(questions).unwrap()).unwrap();
    let mut number = 0;
    for article in document["data"].as_array_mut().unwrap() {
        for paragraph in article["paragraphs"].as_array_mut().unwrap() {
            for question in paragraph["qas"].as_array_mut().unwrap() {
                let answer = &answers[question["id"].as_str().unwrap()];
                let accepted = if number < RIGHT {
                    answer.clone()
                } else {
                    json!("nothing")
                };
                question["answers"] = json!([{ "text": accepted, "answer_start": 0 }]);
                number += 1;
            }
        }
    }
    fs::write(questions, document.to_string()).unwrap();
}

/// Compares logits of shorter sequences with those of the full length: equal but for rounding, and behind the sequence the padding of
/// `accuracy-squad.py`. The predictions of this network differ, because without training the logits of padding are not small.
fn assert_shortened(short: &BTreeMap<u64, String>, full: &BTreeMap<u64, String>) {
    let logits = |answer: &str| -> Vec<f32> {
        let numbers = answer.as_bytes().chunks(8).map(|digits| {
            let digits = std::str::from_utf8(digits).unwrap();
            f32::from_bits(u32::from_str_radix(digits, 16).unwrap().swap_bytes())
        });
        numbers.collect()
    };
    let mut padded = 0;
    assert!(short.keys().eq(full.keys()));
    for (short, full) in short.values().zip(full.values()) {
        assert_eq!(short.len(), full.len());
        let (short, full) = (logits(short), logits(full));
        let is_padding = |&logit: &f32| logit == -10_000.0;
        let tokens = short.len() - short.iter().rev().take_while(|logit| is_padding(logit)).count();
        padded += usize::from(tokens < short.len());
        for (short, full) in short.iter().zip(&full).take(tokens) {
            assert!(
                (short - full).abs() <= 2e-5 * full.abs().max(1.0),
                "{short} {full}"
            );
        }
    }
    assert!(padded > 0, "some samples are shorter");
}

#[test]
fn bert_from_questions_to_a_staged_tree() {
    let (Some(python), Some(plugin)) = (oracle::squad(), official_loadgen::plugin_file("6.0.17")) else {
        return;
    };
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    let data = lab.workspace().join("squad");
    let count = QUESTIONS.to_string();
    oracle::run(
        &python,
        "squad",
        "make_squad.py",
        &[data.as_os_str(), count.as_ref(), "plain".as_ref()],
    );
    let made = oracle::run(&python, "squad", "features.py", &[data.as_os_str()]);
    let samples: usize = made.trim().parse().unwrap();
    let tokens = fs::read_to_string(data.join("vocab.txt"))
        .unwrap()
        .lines()
        .count();
    lab.write_benchmark("bert-99", |text| resized(text, samples, tokens));
    let model = lab.scratch().join("models/bert/model.onnx");
    fs::create_dir_all(model.parent().unwrap()).unwrap();
    fs::write(model, small_bert::model(tokens)).unwrap();

    let states = || lab.benchmark_files("bert-99");
    assert_eq!(states(), ["present", "missing", "missing", "missing"]);
    let prep = ["prep", "bert-99", "--data", data.to_str().unwrap()];
    assert_eq!(lab.json(&prep)["samples"], samples);
    assert_eq!(lab.json(&prep)["unchanged"], samples);
    assert_eq!(states(), ["present"; 4]);

    let plugins = plugin.parent().unwrap().display();
    lab.device_prefix = vec!["env".to_owned(), format!("REGATTA_PLUGINS={plugins}")];
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let first = lab.measure("bert-99", ["SingleStream", "AccuracyOnly"], &SHORT);
    let found = responses(&lab.accuracy_log(&first));
    assert_eq!(found.len(), samples);
    let script = oracle::directory("squad").join("f1.py");
    let judge = |run: &Value| {
        let log = lab.accuracy_log(run);
        let words = [
            "accuracy",
            "bert-99",
            "--log",
            log.to_str().unwrap(),
            "--official",
            script.to_str().unwrap(),
        ];
        let judged = lab.judged(&[&words[..], &["--python", python.to_str().unwrap()]].concat());
        assert_eq!(judged["accuracy"][0]["official"]["agrees"], true, "{judged:#}");
        judged["accuracy"][0].clone()
    };
    judge(&first);
    let answers = fs::read(lab.run_directory(&first).join("accuracy/predictions.json")).unwrap();
    let lengths = [&SHORT[..], &["--set", "sequence_lengths=64,128,256"]].concat();
    let short = lab.measure("bert-99", ["Offline", "AccuracyOnly"], &lengths);
    judge(&short);
    assert_shortened(&responses(&lab.accuracy_log(&short)), &found);
    accept(
        &data.join("dev-v1.1.json"),
        &serde_json::from_slice(&answers).unwrap(),
    );
    assert_eq!(lab.json(&prep)["unchanged"], samples, "the samples are the same");

    let mut expected = String::new();
    for scenario in ["SingleStream", "Offline"] {
        let accuracy = lab.measure("bert-99", [scenario, "AccuracyOnly"], &SHORT);
        assert_eq!(responses(&lab.accuracy_log(&accuracy)), found, "{scenario}");
        let judged = judge(&accuracy);
        assert_eq!(
            (&judged["correct"], &judged["total"]),
            (&json!(RIGHT), &json!(QUESTIONS))
        );
        assert!(
            judged["value"].as_f64() >= judged["target"].as_f64(),
            "{judged:#}"
        );
        expected = judged["official"]["output"].as_str().unwrap().to_owned();
        let _ = lab.measure("bert-99", [scenario, "PerformanceOnly"], &SHORT);
    }
    let audit = ["audit", "run", "--benchmark", "bert-99", "--scenario", "Offline"];
    let audits = lab.judged(&audit);
    let names: Vec<_> = audits["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["test"])
        .collect();
    assert_eq!(names, ["TEST01"], "{audits:#}");
    let tree = lab.workspace().join("tree");
    let words = ["submission", "stage", "--rehearsal", "--output"];
    let staged = lab.regatta().args(words).arg(&tree).output().unwrap();
    assert!(staged.status.success(), "{}", printed(&staged));
    let mut kept = tree::files(&tree);
    kept.retain(|path, _| path.ends_with("/accuracy/accuracy.txt") && !path.contains("/TEST"));
    assert_eq!(kept.len(), 2, "{:?}", kept.keys());
    for (path, text) in kept {
        assert!(path.contains("/bert-99/"), "{path}");
        assert!(text.starts_with(expected.as_bytes()), "{path}");
    }
    let _ = lab.officially_checked(&tree, "v6.1");
}
