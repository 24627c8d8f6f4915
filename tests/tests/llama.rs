//! Llama 3.1 8B from the published form of its articles to a staged tree: prompts, runs with a real model server and the official LoadGen,
//! ROUGE by Regatta and by the reference's script, and staging. The model is small and random.
//!
//! With `REGATTA_LLAMA_SAMPLES=5000`, the benchmark has its full size, and the official checker accepts the length of the answers.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{collections::BTreeMap, env, fs, path::Path};

use regatta_test_support::{official_loadgen, oracle};
use regatta_tests::{
    mlperf_benchmark::responses,
    small_llama::{self, MODEL, SmallLlama, TOKENIZER},
    whole_way::{WholeWay, WholeWayCase},
};
use serde_json::Value;

const FULL: usize = 5000;

/// Returns the text of a response, four bytes per token.
fn text(way: &WholeWay, response: &str) -> String {
    let bytes = |token: &[u8]| {
        u32::from_str_radix(str::from_utf8(token).unwrap(), 16)
            .unwrap()
            .swap_bytes()
    };
    let tokens: Vec<u32> = response.as_bytes().chunks(8).map(bytes).collect();
    small_llama::text(&way.lab, &tokens)
}

/// Returns the answer as the expected summary. The first one gets further words.
fn summary(way: &WholeWay, found: &BTreeMap<u64, String>, number: usize) -> String {
    let answer = text(way, &found[&(number as u64)]);
    let further = if number == 0 { " and more was said." } else { "" };
    format!("{}{further}", answer.trim())
}

/// Copies the data of the sentence tokenizer to where the benchmark has it.
fn copy_sentence_model(way: &WholeWay, python: &Path) {
    let from = oracle::run(python, "summaries", "common.py", &[]);
    let to = way
        .lab
        .scratch()
        .join("data/nltk_data/tokenizers/punkt_tab/english");
    fs::create_dir_all(&to).unwrap();
    for file in fs::read_dir(from.trim()).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

#[test]
fn llama_from_articles_to_a_staged_tree() {
    let samples = env::var("REGATTA_LLAMA_SAMPLES").map_or(24, |samples| samples.parse().unwrap());
    let size = SmallLlama {
        samples,
        max_tokens: if samples == FULL { 128 } else { 16 },
    };
    let (Some(python), Some(server), Some(plugin)) = (
        oracle::summaries(),
        oracle::llama_cpp(),
        official_loadgen::plugin_file("6.0.17"),
    ) else {
        return;
    };
    let case = WholeWayCase {
        benchmark: small_llama::BENCHMARK,
        model: small_llama::BENCHMARK,
        round: "v6.1",
        scenarios: &["Offline", "SingleStream"],
        samples,
        queries: ["min_query_count=24", "min_query_count=24"],
        setting: "inference_streams=2",
        metric: "ROUGE1",
        script: ["summaries", "evaluation.py"],
    };
    let network = (format!("{TOKENIZER}/config.json"), b"{}".to_vec());
    let way = WholeWay::new(
        case,
        python.clone(),
        |text| size.resize(text),
        (&network.0, network.1),
    );
    let Some(mut way) = way else {
        return;
    };
    let driver = small_llama::add_model(&way.lab, &server);
    let settings = vec![
        format!("server={}", driver.display()),
        format!("server_model={MODEL}"),
    ];
    way.use_engine("server", settings);
    copy_sentence_model(&way, &python);
    let data = way.lab.workspace().join("articles");
    size.write_articles(&data, |_| "Nothing alike.".to_owned());
    way.prepare(&data);
    way.start(Some(&plugin));
    let found = responses(&way.lab.accuracy_log(&way.first_run()));
    assert_eq!(found.len(), samples);
    size.write_articles(&data, |number| summary(&way, &found, number));
    assert_eq!(way.prep(&data)["samples"], samples);

    let script_line = |judged: &Value| {
        let rouge = judged["value"].as_f64().unwrap();
        assert!((50.0..100.0).contains(&rouge), "further words differ: {judged:#}");
        if samples == FULL {
            // The answers of the scenarios differ a little, see below.
            return format!("'gen_num': {FULL}");
        }
        let output = judged["official"]["output"].as_str().unwrap();
        output.lines().last().unwrap().to_owned()
    };
    let (whole, _) = way.measure_scenario("Offline", script_line);
    let (one, printed) = way.measure_scenario("SingleStream", script_line);
    for run in [whole, one] {
        let answers = responses(&way.lab.accuracy_log(&run));
        assert_eq!(answers.len(), found.len());
        // Requests that are computed together round differently, which shows in long answers.
        assert!(samples == FULL || answers == found);
    }
    way.stage(&printed);
}
