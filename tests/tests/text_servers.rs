//! Tests benchmarks on model servers that take or return texts, or decode with beams: prompts of token ids through a chat, and recordings through
//! transcriptions, with a real llama.cpp and a small random model; beams with a made-up vLLM.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use regatta_test_support::oracle;
use regatta_tests::{
    Broker, Lab,
    mlperf_benchmark::{replaced, responses},
    printed,
    small_llama::{self, BENCHMARK, MODEL, SmallLlama, TOKENIZER},
    small_whisper,
};
use regatta_types::benchmark::ENGLISH_SYMBOLS;
use serde_json::{Value, json};

fn start(lab: &mut Lab) {
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
}

/// Writes a driver for the oracle's llama.cpp with these tables.
fn write_llama_driver(lab: &Lab, python: &Path, tables: &str) -> PathBuf {
    let script = oracle::directory("llama-cpp").join("serve.py");
    let text = format!(
        "schema = 1\ntitle = \"llama.cpp\"\ncommand = [{:?}, {:?}, \"{{model}}\", \"{{port}}\", \"{{context}}\", \"{{parallel}}\"]\n\
         ready = {{ path = \"/health\", within_s = 60 }}\nloaded_model = {{ path = \"/props\", model = \"/model_path\" }}\n\
         activity = {{ path = \"/metrics\", tokens = \"llamacpp:tokens_predicted_total\" }}\n{tables}",
        python.display().to_string(),
        script.display().to_string()
    );
    let path = lab.workspace().join("driver.toml");
    fs::write(&path, text).unwrap();
    path
}

/// Makes the model that chats and hears.
fn add_model(lab: &Lab, python: &Path) {
    let [model, tokenizer] = [MODEL, TOKENIZER].map(|path| lab.scratch().join(path));
    fs::create_dir_all(&tokenizer).unwrap();
    let files = [model.as_os_str(), tokenizer.as_os_str()];
    oracle::run(python, "llama-cpp", "make_speech_model.py", &files);
}

/// Runs a benchmark with a driver and returns the run.
fn measure(lab: &Lab, benchmark: &str, driver: &Path, scenario: &str, mode: &str, further: &[&str]) -> Value {
    let server = format!("server={}", driver.display());
    let command = [
        "run",
        "--benchmark",
        benchmark,
        "--scenario",
        scenario,
        "--mode",
        mode,
        "--engine",
        "server",
        "--set",
        &server,
        "--duration",
        "300ms",
    ];
    let run = lab.judged(&[&command[..], further].concat())["runs"][0].clone();
    assert_eq!(run["phase"], "done", "{run:#}");
    run
}

/// Returns a value of a run's LoadGen.
fn figure(lab: &Lab, run: &Value, key: &str) -> f64 {
    let detail = lab.run_directory(run).join("files/mlperf_log_detail.txt");
    let detail = fs::read_to_string(detail).unwrap();
    let line = detail
        .lines()
        .find(|line| line.contains(&format!("\"key\": \"{key}\"")));
    let line: Value = serde_json::from_str(line.unwrap().split_once("MLLOG ").unwrap().1).unwrap();
    line["value"].as_f64().unwrap()
}

fn tokens(response: &str) -> Vec<u32> {
    let token = |digits: &[u8]| {
        u32::from_str_radix(str::from_utf8(digits).unwrap(), 16)
            .unwrap()
            .swap_bytes()
    };
    response.as_bytes().chunks(8).map(token).collect()
}

#[test]
fn a_chat_answers_the_prompts_of_llama() {
    let Some(python) = oracle::llama_cpp() else { return };
    let size = SmallLlama {
        samples: 12,
        max_tokens: 16,
    };
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.write_benchmark(BENCHMARK, |text| size.resize(text));
    add_model(&lab, &python);
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/servers/edge-llm.toml");
    let shipped = fs::read_to_string(shipped).unwrap();
    let (_, chat) = shipped.split_once("[generate]").unwrap();
    let driver = write_llama_driver(&lab, &python, &format!("[generate]{chat}"));
    let data = lab.workspace().join("articles");
    size.write_articles(&data, |_| String::new());
    let made = lab.json(&["prep", BENCHMARK, "--data", data.to_str().unwrap()]);
    assert_eq!(made["samples"], size.samples, "{made:#}");
    start(&mut lab);

    let model = format!("server_model={MODEL}");
    let single = measure(
        &lab,
        BENCHMARK,
        &driver,
        "SingleStream",
        "AccuracyOnly",
        &["--set", &model],
    );
    let several = ["--set", &model, "--set", "inference_streams=3"];
    let offline = measure(&lab, BENCHMARK, &driver, "Offline", "AccuracyOnly", &several);
    let answers = responses(&lab.accuracy_log(&single));
    assert_eq!(answers.len(), size.samples);
    assert_eq!(answers, responses(&lab.accuracy_log(&offline)));
    let texts: BTreeMap<u64, String> = answers
        .iter()
        .map(|(index, answer)| (*index, small_llama::text(&lab, &tokens(answer))))
        .collect();
    assert!(
        texts.values().all(|text| text.split_whitespace().count() == 16),
        "{texts:?}"
    );
    // The closed division requires the data set's prompts.
    let warnings = single["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{single:#}");
    assert!(
        warnings[0]
            .as_str()
            .unwrap()
            .starts_with("prompts were sent as texts to a chat"),
        "{single:#}"
    );

    let run = measure(
        &lab,
        BENCHMARK,
        &driver,
        "Server",
        "PerformanceOnly",
        &[
            "--set",
            &model,
            "--conf",
            "min_query_count=32",
            "--conf",
            "target_qps=20",
        ],
    );
    let (first, all) = (
        figure(&lab, &run, "result_first_token_mean_latency_ns"),
        figure(&lab, &run, "result_mean_latency_ns"),
    );
    assert!(0.0 < first && first < all, "{first} {all}");
}

/// The table of a driver for llama.cpp, whose models hear.
const SPEECH: &str = r#"
[transcribe]
path = "/v1/audio/transcriptions"
fields = { response_format = "json", temperature = "0", max_tokens = "{max_tokens}" }
text = "/text"
count = "/usage/output_tokens"
"#;

#[test]
fn a_server_transcribes_the_recordings_of_whisper() {
    const CLIPS: usize = 7;
    let (Some(python), Some(speech), Some(normalizer)) =
        (oracle::llama_cpp(), oracle::librispeech(), oracle::whisper())
    else {
        return;
    };
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.write_benchmark("whisper", |text| small_whisper::resized(text, CLIPS));
    add_model(&lab, &python);
    let driver = write_llama_driver(&lab, &python, SPEECH);
    let spellings = oracle::run(&normalizer, "whisper", "words.py", &[]);
    let to = lab.scratch().join("data/whisper/english.json");
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(spellings.trim(), to).unwrap();
    let data = lab.workspace().join("LibriSpeech");
    let arguments: [&OsStr; 2] = ["dataset".as_ref(), data.as_os_str()];
    oracle::run(&speech, "whisper", "speech.py", &arguments);
    assert_eq!(
        lab.json(&["prep", "whisper", "--data", data.to_str().unwrap()])["samples"],
        CLIPS
    );
    start(&mut lab);

    let model = format!("server_model={MODEL}");
    let settings = ["--round", "v6.1", "--set", &model, "--set", "inference_streams=2"];
    let run = measure(&lab, "whisper", &driver, "Offline", "AccuracyOnly", &settings);
    assert_eq!(run["warnings"], json!([]), "{run:#}");
    let answers = responses(&lab.accuracy_log(&run));
    assert_eq!(answers.len(), CLIPS);
    for answer in answers.values() {
        let symbol = |pair: &[u8]| {
            let symbol = usize::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
            char::from(ENGLISH_SYMBOLS[symbol])
        };
        let text: String = answer.as_bytes().chunks(2).map(symbol).collect();
        // One of the model's words is a full stop, which is not a symbol.
        assert!(text.split(' ').count() > 12, "{text}");
    }
    let different: std::collections::BTreeSet<&String> = answers.values().collect();
    assert!(different.len() > 2, "{different:?}");
    assert!(run["accuracy"]["value"].as_f64().is_some(), "{run:#}");

    let short = [&settings[..], &["--conf", "min_query_count=14"]].concat();
    let run = measure(&lab, "whisper", &driver, "Offline", "PerformanceOnly", &short);
    let (samples, tokens) = (
        figure(&lab, &run, "result_samples_per_second"),
        figure(&lab, &run, "result_tokens_per_second"),
    );
    assert!((tokens / samples - 24.0).abs() < 0.1, "{tokens} {samples}");
}

/// A made-up vLLM. The best of its beams is the beginning of the prompt in reverse, and the others are worse.
const VLLM: &str = r#"
import http.server, json, sys
model, port = sys.argv[1:]
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def answer(self, body):
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def do_GET(self):
        if self.path == "/v1/models": self.answer(json.dumps({"data": [{"root": model}]}).encode())
        elif self.path == "/metrics": self.answer(b"vllm:request_success_total 7\nvllm:generation_tokens_total 900\nprocess_start_time_seconds 1\n")
        else: self.answer(b"")
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert request["use_beam_search"] is True and request["n"] == 4 and request["max_tokens"] == 128, request
        best = request["prompt"][:31][::-1]
        choices = [{"token_ids": best}] + [{"token_ids": [0]}] * 3
        self.answer(json.dumps({"choices": choices, "usage": {"completion_tokens": 4 * len(best)}}).encode())
http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()
"#;

#[test]
fn gptj_is_decoded_with_beams() {
    const LONGEST: usize = 200;
    let Some(python) = oracle::summaries() else { return };
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.write_benchmark("gptj-99", |text| {
        replaced(
            text,
            &[
                ("_samples = 13368", "_samples = 5"),
                ("input_shape = [1919]", &format!("input_shape = [{LONGEST}]")),
            ],
        )
    });
    let data = lab.workspace().join("articles");
    fs::create_dir_all(&data).unwrap();
    let text = |number: usize| {
        format!("Article {number} says that it's {number}0 degrees in London. ").repeat(number + 1)
    };
    let article = |number| json!({ "instruction": "Summarize:", "input": text(number), "output": "" });
    let articles: Vec<Value> = (0..5).map(article).collect();
    fs::write(data.join("cnn_eval.json"), json!(articles).to_string()).unwrap();
    let texts = lab.workspace().join("texts.json");
    fs::write(&texts, json!((0..5).map(text).collect::<Vec<_>>()).to_string()).unwrap();
    let made = lab.workspace().join("tokenizers");
    oracle::run(
        &python,
        "summaries",
        "tokens.py",
        &[texts.as_os_str(), made.as_os_str()],
    );
    let tokenizer = lab.scratch().join("models/gpt-j/tokenizer");
    fs::create_dir_all(tokenizer.parent().unwrap()).unwrap();
    fs::rename(made.join("gpt2"), &tokenizer).unwrap();
    assert_eq!(
        lab.json(&["prep", "gptj-99", "--data", data.to_str().unwrap()])["samples"],
        5
    );

    let script = lab.workspace().join("vllm.py");
    fs::write(&script, VLLM).unwrap();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/servers/vllm.toml");
    let shipped = fs::read_to_string(shipped).unwrap();
    let (before, rest) = shipped.split_once("command = [").unwrap();
    let (_, after) = rest.split_once("]\n").unwrap();
    let command = format!(
        "command = [\"python3\", {:?}, \"{{model}}\", \"{{port}}\"]\n",
        script.display().to_string()
    );
    let driver = lab.workspace().join("vllm.toml");
    fs::write(&driver, format!("{before}{command}{after}")).unwrap();
    fs::create_dir_all(lab.scratch().join("models/gpt-j/checkpoint-final")).unwrap();
    start(&mut lab);

    let settings = [
        "--round",
        "v5.0",
        "--set",
        "server_model=models/gpt-j/checkpoint-final",
    ];
    let run = measure(&lab, "gptj-99", &driver, "Offline", "AccuracyOnly", &settings);
    assert_eq!(
        run["warnings"],
        json!([]),
        "the server's counters are not those of beams: {run:#}"
    );
    let prompts = lab
        .scratch()
        .join("preprocessed_data/cnn_dailymail/published/input_ids.npy");
    let prompts = fs::read(prompts).unwrap();
    let ids = &prompts[prompts.len() - 5 * LONGEST * 4..];
    for (index, answer) in responses(&lab.accuracy_log(&run)) {
        let prompt = &ids[usize::try_from(index).unwrap() * LONGEST * 4..][..31 * 4];
        let mut expected: Vec<u32> = prompt
            .chunks(4)
            .map(|id| u32::from_le_bytes(id.try_into().unwrap()))
            .collect();
        expected.reverse();
        assert_eq!(tokens(&answer), expected, "sample {index}");
    }

    let mut command = lab.regatta();
    command.args([
        "run",
        "--benchmark",
        "gptj-99",
        "--round",
        "v5.0",
        "--scenario",
        "Offline",
        "--engine",
        "server",
    ]);
    let output = command.args(["--set", "server=llama-cpp"]).output().unwrap();
    let text = printed(&output);
    assert!(
        !output.status.success()
            && text.contains("gptj-99 is decoded with 4 beams, and the driver llama-cpp has no beam search"),
        "{text}"
    );
}
