//! Tests of the probe and of the counters with a real server: llama.cpp with a small random model.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use regatta_catalogue::servers;
use regatta_test_support::oracle;

use super::{probes::start, *};

/// Makes a model for chats, and returns the shipped driver with the oracle's script as its program.
fn driver(bench: &Bench, python: &Path) -> String {
    let [model, tokenizer] = ["model", "tokenizer"].map(|name| bench.dir.path().join(name));
    let files = [model.as_os_str(), tokenizer.as_os_str()];
    oracle::run(python, "llama-cpp", "make_chat_model.py", &files);
    let (_, text) = servers::texts().find(|(name, _)| *name == "llama-cpp").unwrap();
    let (before, rest) = text.split_once("command = [").unwrap();
    let (_, after) = rest.split_once("]\n").unwrap();
    let (_, after) = after.split_once("client_arguments").unwrap();
    let (_, after) = after.split_once('\n').unwrap();
    let script = oracle::directory("llama-cpp").join("serve.py");
    format!(
        "{before}command = [{:?}, {:?}, \"{{model}}\", \"{{port}}\", \"{{context}}\", \"{{parallel}}\", \"small\", \"{{host}}\"]\n{after}",
        python.display().to_string(),
        script.display().to_string()
    )
}

#[test]
fn llama_cpp_answers_the_probe_of_its_driver_and_a_model_that_knows_nothing_is_refused() {
    let Some(python) = oracle::llama_cpp() else { return };
    let bench = Bench::new();
    let text = driver(&bench, &python);
    let path = bench.dir.path().join("driver.toml");
    fs::write(&path, &text).unwrap();
    let error = start(&bench, &path).err().unwrap();
    assert!(error.contains("does not contain `Paris`"), "{error}");
    assert!(error.contains("it printed last:"), "{error}");

    // The server says which model it loaded, and counts.
    fs::write(&path, text.replace("contains = \"Paris\"\n", "")).unwrap();
    start(&bench, &path).unwrap().stop().unwrap();
    let counted = fs::read(bench.dir.path().join("server.json")).unwrap();
    let counted: serde_json::Value = serde_json::from_slice(&counted).unwrap();
    assert!(counted["before"]["tokens"].as_f64().unwrap() > 0.0, "{counted}");
    assert_eq!(counted["before"], counted["after"], "{counted}");
}

#[test]
fn llama_cpp_counts_the_tokens_of_a_run_and_those_of_another_client() {
    let Some(python) = oracle::llama_cpp() else { return };
    let mut bench = Bench::new();
    bench.is_streaming = true;
    let path = bench.dir.path().join("driver.toml");
    fs::write(&path, driver(&bench, &python)).unwrap();
    for has_other_client in [false, true] {
        let backend = bench.configure(&path).unwrap();
        let mut loaded = bench.load_backend(&backend, 1).unwrap();
        let sample: Vec<u8> = [70, 71, 72, 0, 3_i32]
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let batch = Batch {
            samples: &[0],
            input: Input::Contiguous(&sample),
        };
        let mut answers = Answers::default();
        for _ in 0..3 {
            loaded.engines[0].infer(&batch, &mut answers).unwrap();
        }
        if has_other_client {
            complete(&bench);
        }
        let warnings = backend.end_run().map_err(|error| chain(&error)).unwrap();
        assert_eq!(warnings.is_empty(), !has_other_client, "{warnings:?}");
        assert!(
            warnings.iter().all(
                |warning| warning.starts_with("the server counted 27 generated tokens")
                    && warning.contains("but the run made 24")
            ),
            "{warnings:?}"
        );
    }
}

/// Requests three tokens as another client.
fn complete(bench: &Bench) {
    let evidence = fs::read(bench.dir.path().join("server.json")).unwrap();
    let evidence: serde_json::Value = serde_json::from_slice(&evidence).unwrap();
    let port: u16 = evidence["command"][3].as_str().unwrap().parse().unwrap();
    let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let body = r#"{"prompt":[70,71],"n_predict":3,"temperature":0}"#;
    write!(
        connection,
        "POST /completion HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"tokens_predicted\":3"), "{answer}");
}
