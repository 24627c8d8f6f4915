//! Tests of servers that take texts or recordings and answer in text: llama.cpp with a small random model that chats and hears, and a made-up one.

use regatta_test_support::oracle;
use regatta_tokenizer::Tokenizer;
use regatta_types::benchmark::ENGLISH_SYMBOLS;

use super::*;

/// The table of the shipped driver that chats.
fn chat_table() -> &'static str {
    let (_, text) = servers::texts().find(|(name, _)| *name == "edge-llm").unwrap();
    let (_, table) = text.split_once("[generate]").unwrap();
    table
}

/// Makes the model and its tokenizer where the benchmark has it. Returns a driver with the oracle's script as its program, and these tables.
fn llama(bench: &Bench, tables: &str) -> Option<PathBuf> {
    let python = oracle::llama_cpp()?;
    let tokenizer = bench.dir.path().join("models/llama3.1-8b");
    fs::create_dir_all(&tokenizer).unwrap();
    let files = [bench.dir.path().join("model"), tokenizer];
    let files: Vec<_> = files.iter().map(|path| path.as_os_str()).collect();
    oracle::run(&python, "llama-cpp", "make_speech_model.py", &files);
    let script = oracle::directory("llama-cpp").join("serve.py");
    let text = format!(
        "schema = 1\ntitle = \"llama.cpp\"\ncommand = [{:?}, {:?}, \"{{model}}\", \"{{port}}\", \"{{context}}\", \"{{parallel}}\"]\n\
         ready = {{ path = \"/health\", within_s = 60 }}\n\
         activity = {{ path = \"/metrics\", tokens = \"llamacpp:tokens_predicted_total\" }}\n{tables}",
        python.display().to_string(),
        script.display().to_string()
    );
    let path = bench.dir.path().join("driver.toml");
    fs::write(&path, text).unwrap();
    Some(path)
}

/// Returns the answer to a sample, its number of tokens, and the first token if it came before the answer.
fn answer(engine: &mut dyn Engine, sample: &[u8]) -> (Vec<u8>, usize, Option<Vec<u8>>) {
    let batch = Batch {
        samples: &[0],
        input: Input::Contiguous(sample),
    };
    let (mut answers, mut first) = (Answers::default(), None);
    let infer = engine.infer_streaming(&batch, &mut answers, &mut |_, token| {
        first = Some(token.to_owned())
    });
    infer.map_err(|error| chain(&error)).unwrap();
    let count = answers.token_counts().next().unwrap();
    (answers.iter().next().unwrap().to_owned(), count as usize, first)
}

#[test]
fn a_chat_of_llama_cpp_answers_prompts_of_token_ids() {
    let mut bench = Bench::new();
    let Some(driver) = llama(&bench, &format!("[generate]{}", chat_table())) else {
        return;
    };
    let file = bench.dir.path().join("models/llama3.1-8b/tokenizer.json");
    let tokenizer = Tokenizer::read(&file).unwrap();
    let prompt = |ids: [i32; 5]| -> Vec<u8> { ids.iter().flat_map(|id| id.to_le_bytes()).collect() };
    let mut found = Vec::new();
    for is_streaming in [true, false] {
        bench.is_streaming = is_streaming;
        let backend = bench.configure(&driver).unwrap();
        let mut loaded = bench.load_backend(&backend, 1).unwrap();
        let engine = loaded.engines[0].as_mut();
        let answers = [[5, 6, 7, 0, 3], [9, 60, 2, 8, 4]].map(|ids| answer(engine, &prompt(ids)));
        for (bytes, count, first) in &answers {
            let ids: Vec<u32> = bytes
                .chunks(4)
                .map(|id| u32::from_le_bytes(id.try_into().unwrap()))
                .collect();
            assert_eq!(
                (ids.len(), *count),
                (8, 8),
                "the tokens are words, and the server states their number"
            );
            let text = String::from_utf8(tokenizer.decode(&ids).unwrap()).unwrap();
            assert_eq!(text.split_whitespace().count(), 8, "{text}");
            assert_eq!(first.as_deref(), is_streaming.then_some(&bytes[..4]));
        }
        assert_ne!(answers[0].0, answers[1].0, "the prompts differ");
        found.push(answers.map(|(bytes, ..)| bytes));
        // Other requests or tokens would be another client's.
        let warnings = backend.end_run().map_err(|error| chain(&error)).unwrap();
        assert_eq!(warnings, [CHAT]);
    }
    assert_eq!(found[0], found[1]);

    fs::remove_file(&file).unwrap();
    let error = bench.load_with(&driver, 1).err().unwrap();
    assert!(
        error.contains("cannot read the tokenizer") && error.contains("models/llama3.1-8b/tokenizer.json"),
        "{error}"
    );
    bench.benchmark.accuracy.summaries = None;
    let error = bench.load_with(&driver, 1).err().unwrap();
    assert!(
        error.contains("its prompts are token ids, the driver sends texts, and no tokenizer is in"),
        "{error}"
    );
}

#[test]
fn a_model_that_reasons_is_refused_before_the_run() {
    let bench = Bench::new();
    let tokenizer = bench.dir.path().join("models/llama3.1-8b");
    fs::create_dir_all(&tokenizer).unwrap();
    let document = serde_json::json!({
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false },
        "model": { "vocab": { "a": 0, "b": 1, "Ġ": 2 }, "merges": [] },
    });
    fs::write(tokenizer.join("tokenizer.json"), document.to_string()).unwrap();
    let script = bench.dir.path().join("fake.py");
    let command = format!("\"python3\", \"{}\", \"{{port}}\"", script.display());
    let load = |mode: &str| {
        let driver = bench.driver(mode, &command);
        let text = fs::read_to_string(&driver).unwrap();
        let (before, _) = text.split_once("[generate]").unwrap();
        fs::write(&driver, format!("{before}[generate]{}", chat_table())).unwrap();
        bench.load_with(&driver, 1)
    };
    let mut loaded = load("").unwrap();
    let prompt: Vec<u8> = [0, 1, 2, 0, 3_i32]
        .iter()
        .flat_map(|id| id.to_le_bytes())
        .collect();
    let (tokens, count, _) = answer(loaded.engines[0].as_mut(), &prompt);
    let expected: Vec<u8> = [0, 2, 1_i32].iter().flat_map(|id| id.to_le_bytes()).collect();
    assert_eq!((tokens, count), (expected, 3));
    let error = load("reasons").err().unwrap();
    assert!(
        error.contains("the model reasons before it answers, which the benchmark forbids: Let me see; hint: switch its chat template's reasoning off"),
        "{error}"
    );
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
fn llama_cpp_transcribes_the_recordings_of_whisper() {
    let mut bench = Bench::new();
    let Some(driver) = llama(&bench, SPEECH) else {
        return;
    };
    let mut benchmarks = known::benchmarks().unwrap().into_iter();
    bench.benchmark = benchmarks.find(|benchmark| benchmark.name == "whisper").unwrap();
    bench
        .benchmark
        .model
        .encoder_decoder
        .as_mut()
        .unwrap()
        .most_tokens = 12;
    let recording = |seconds: f32, tone: f32| -> Vec<u8> {
        let (length, longest) = ((seconds * 16_000.0) as usize, 480_000);
        let value = |at: usize| {
            if at < length {
                (at as f32 * tone).sin() / 3.0
            } else {
                0.0
            }
        };
        let waveform = (0..longest).flat_map(|at| value(at).to_le_bytes());
        waveform.chain((length as i32).to_le_bytes()).collect()
    };
    let missing = bench.load_with(&driver, 1).err().unwrap();
    assert!(
        missing.contains("the setting `server_model` is missing"),
        "{missing}"
    );

    let backend = bench
        .configure_with(&driver, &[("server_model", "model")])
        .unwrap();
    let mut loaded = bench.load_backend(&backend, 1).unwrap();
    let engine = loaded.engines[0].as_mut();
    let tones = [(1.5, 0.05), (29.0, 0.2), (1.5, 0.05)]
        .map(|(seconds, tone)| answer(engine, &recording(seconds, tone)));
    for (symbols, count, _) in &tones {
        let text: String = symbols
            .iter()
            .map(|symbol| char::from(ENGLISH_SYMBOLS[usize::from(*symbol)]))
            .collect();
        assert_eq!((text.split(' ').count(), *count), (12, 12), "{text}");
        assert!(!text.starts_with(' '), "{text}");
    }
    assert_ne!(tones[0].0, tones[1].0, "the recordings differ");
    assert_eq!(tones[0].0, tones[2].0);
    let warnings = backend.end_run().map_err(|error| chain(&error)).unwrap();
    assert_eq!(warnings, [""; 0]);
    drop(loaded);

    // A server that states no number needs a tokenizer that counts.
    let text = fs::read_to_string(&driver).unwrap();
    fs::write(&driver, text.replace("count = \"/usage/output_tokens\"\n", "")).unwrap();
    let settings = [("server_model", "model")];
    let backend = bench.configure_with(&driver, &settings).unwrap();
    let error = bench.load_backend(&backend, 1).err().unwrap();
    assert!(error.contains("cannot read the tokenizer"), "{error}");
    let published = bench.dir.path().join("models/whisper/published");
    fs::create_dir_all(&published).unwrap();
    let tokenizer = bench.dir.path().join("models/llama3.1-8b/tokenizer.json");
    fs::copy(tokenizer, published.join("tokenizer.json")).unwrap();
    let backend = bench.configure_with(&driver, &settings).unwrap();
    let mut loaded = bench.load_backend(&backend, 1).unwrap();
    let counted = answer(loaded.engines[0].as_mut(), &recording(1.5, 0.05));
    assert_eq!(
        (counted.0, counted.1),
        (tones[0].0.clone(), 13),
        "the end of a transcript is a token"
    );
    assert_eq!(backend.end_run().map_err(|error| chain(&error)).unwrap(), [""; 0]);

    // Only a driver that says how transcribes.
    let error = bench.configure(Path::new("llama-cpp")).unwrap();
    let error = bench.load_backend(&error, 1).err().unwrap();
    assert!(
        error.contains("the server driver llama.cpp has no `transcribe`"),
        "{error}"
    );
}
