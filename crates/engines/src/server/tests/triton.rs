//! Tests of networks on a real Triton, whose python backend computes them with ONNX Runtime: answers, batches, shared memory and faults. Nothing
//! runs without the oracle.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use regatta_catalogue::servers;
use regatta_test_support::{fixture::onnx, oracle, small_resnet50};
use regatta_types::benchmark::Response;
use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// The largest difference of a score from tract's, of scores that add to 1.
const BOUND: f32 = 1e-5;

/// ResNet50's benchmark with a small network.
struct Resnet {
    dir: tempfile::TempDir,
    benchmark: Benchmark,
    driver: String,
    /// Most samples in a batch.
    batch: usize,
}

impl Resnet {
    fn new(python: &Path, shares_memory: bool) -> Self {
        let benchmarks = known::benchmarks().unwrap().into_iter();
        let mut benchmark = benchmarks
            .into_iter()
            .find(|benchmark| benchmark.name == "resnet50")
            .unwrap();
        // The class and all scores.
        benchmark.model.response = Response::AllOutputs;
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("model.onnx"), small_resnet50::model()).unwrap();
        let driver = driver(python).replace(
            "shared_memory = true",
            &format!("shared_memory = {shares_memory}"),
        );
        Self {
            dir,
            benchmark,
            driver,
            batch: 4,
        }
    }

    fn configure(&self, kind: EngineKind, settings: &[(&str, &str)]) -> Box<dyn EngineBackend> {
        let driver = self.dir.path().join("triton.toml");
        fs::write(&driver, &self.driver).unwrap();
        let driver = driver.display().to_string();
        let named = [("server", driver.as_str())];
        let named = named.iter().filter(|_| kind == EngineKind::Server);
        let settings = EngineSettings::parse(kind, named.chain(settings).copied()).unwrap();
        let request = EngineRequest {
            settings: &settings,
            scenario: Scenario::Offline,
            model: &self.benchmark.model,
            scratch: Some(self.dir.path()),
            sends_first_tokens: false,
            files: self.dir.path(),
        };
        crate::configure(kind, &request).unwrap()
    }

    fn load(&self, backend: &dyn EngineBackend, streams: usize) -> Result<Loaded, String> {
        let request = LoadRequest {
            benchmark: &self.benchmark,
            model_file: self.dir.path().join("model.onnx"),
            image_sizes: Arc::default(),
            volumes: Arc::default(),
            sequences: Arc::new(SequenceBuckets::default()),
            batch_sizes: &[1, self.batch],
            takes_any_batch: true,
            streams,
        };
        crate::load(backend, &request, None).map_err(|error| chain(&error))
    }

    fn refusal(&self) -> String {
        let backend = self.configure(EngineKind::Server, &[]);
        self.load(&*backend, 1).err().unwrap()
    }
}

/// Returns the shipped driver with the oracle's program, and with its backend that needs no GPU and no library of ONNX Runtime's.
fn driver(python: &Path) -> String {
    let (_, text) = servers::texts().find(|(name, _)| *name == "triton").unwrap();
    let [serve, model] = ["serve.py", "model.py"].map(|name| oracle::directory("triton").join(name));
    let program = format!(
        "{:?}, {:?}",
        python.display().to_string(),
        serve.display().to_string()
    );
    let files = format!(
        "\"model.onnx\" = \"{{model}}\", \"model.py\" = {:?}",
        model.display().to_string()
    );
    let parts = [
        ("\"tritonserver\"", program.as_str()),
        ("backend = \"onnxruntime\"", "backend = \"python\""),
        ("\"model.onnx\" = \"{model}\"", &files),
    ];
    parts.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

/// Returns an image as ResNet50's samples are: 3 planes of 224 x 224 values from -123 to 151.
fn image(number: usize) -> Vec<u8> {
    let mut state = number as u64 + 1;
    let value = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) % 275) as f32 - 123.0
    };
    (0..3 * 224 * 224).map(value).flat_map(f32::to_le_bytes).collect()
}

/// Returns the answers to a batch of images.
fn infer(engine: &mut dyn Engine, samples: &[usize]) -> Vec<Vec<u8>> {
    let arena: Vec<u8> = samples.iter().flat_map(|&sample| image(sample)).collect();
    let mut answers = Answers::default();
    let batch = Batch {
        samples,
        input: Input::Contiguous(&arena),
    };
    engine.infer(&batch, &mut answers).unwrap();
    let slots: Vec<usize> = (0..samples.len()).collect();
    let mut scattered = Answers::default();
    let batch = Batch {
        samples,
        input: Input::Scattered {
            arena: &arena,
            slots: &slots,
        },
    };
    engine.infer(&batch, &mut scattered).unwrap();
    assert!(
        answers.iter().eq(scattered.iter()),
        "where the samples are must not matter"
    );
    answers.iter().map(<[u8]>::to_vec).collect()
}

/// Asserts that answers have the same class and nearly the same scores.
fn assert_near(found: &[Vec<u8>], expected: &[Vec<u8>]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.len(), 8 + 1001 * 4);
        assert_eq!(found[..8], expected[..8], "the classes");
        let scores = |answer: &[u8]| {
            let floats = answer[8..].chunks_exact(4);
            floats
                .map(|float| f32::from_le_bytes(float.try_into().unwrap()))
                .collect::<Vec<_>>()
        };
        let (found, expected) = (scores(found), scores(expected));
        assert!(found.iter().sum::<f32>() > 0.99);
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < BOUND, "{found} {expected}");
        }
    }
}

#[test]
fn a_network_on_triton_answers_as_tract_does_in_the_body_and_in_shared_memory() {
    let Some(python) = oracle::triton() else { return };
    for shares_memory in [false, true] {
        let resnet = Resnet::new(&python, shares_memory);
        let tract = resnet.configure(EngineKind::Tract, &[]);
        let mut tract = resnet.load(&*tract, 1).unwrap();
        let settings = [("instance_group_count", "2"), ("max_queue_delay_usec", "200")];
        let backend = resnet.configure(EngineKind::Server, &settings);
        let mut loaded = resnet.load(&*backend, 2).unwrap();
        assert_eq!(loaded.description.version, "Triton 2.51.0");
        for samples in [&[0][..], &[1, 2, 3, 4], &[5, 6, 7]] {
            let expected = infer(&mut *tract.engines[0], samples);
            for engine in &mut loaded.engines {
                assert_eq!(engine.max_batch(), 4);
                assert_near(&infer(&mut **engine, samples), &expected);
            }
        }
        // Shared memory has no name once the server has opened it.
        let named = fs::read_dir("/dev/shm").unwrap().filter(|file| {
            let name = file.as_ref().unwrap().file_name();
            name.to_string_lossy()
                .contains(&format!("-{}-", std::process::id()))
        });
        assert_eq!(named.count(), 0);
        let evidence = fs::read(resnet.dir.path().join("server.json")).unwrap();
        let evidence: serde_json::Value = serde_json::from_slice(&evidence).unwrap();
        assert_eq!(
            evidence["network_config"]["instance_group"][0]["count"], 2,
            "{evidence}"
        );
        let script = evidence["network_files"]["model.py"].as_str();
        assert_eq!(script.map(str::len), Some(64), "{evidence}");
        let config = fs::read_to_string(resnet.dir.path().join("config.pbtxt")).unwrap();
        assert!(
            config.contains("max_batch_size: 4") && config.contains("count: 2"),
            "{config}"
        );

        // Triton counts the requests of this run, and those of another client.
        assert_eq!(backend.end_run().map_err(|error| chain(&error)), Ok(Vec::new()));
        infer_as_another_client(&resnet);
        let warnings = backend.end_run().unwrap();
        assert_eq!(
            warnings,
            [
                "the server counted 13 requests during the run, but the run made 12: another client may have been served"
            ]
        );
        drop((loaded, backend));
        assert!(!resnet.dir.path().join(".model-repository").exists());
    }
}

/// A Triton that no run starts, with a network of another name. It ends with the test.
struct UserTriton {
    process: std::process::Child,
    address: String,
    _repository: ModelRepository,
}

impl UserTriton {
    /// Starts Triton with the network of `resnet`, for batches of up to 4.
    fn start(resnet: &Resnet) -> Self {
        let listen = std::net::TcpListener::bind(("127.0.0.1", 0))
            .unwrap()
            .local_addr()
            .unwrap();
        let driver = ServerDriver::from_toml("mine", &resnet.driver).unwrap();
        let files = resnet.dir.path().join("of-the-user");
        fs::create_dir(&files).unwrap();
        let model = resnet.dir.path().join("model.onnx");
        let kserve = driver.kserve.as_ref().unwrap();
        let repository =
            ModelRepository::write(kserve, &model, 4, &EngineSettings::default(), &files).unwrap();
        let command = driver.command(&CommandValues {
            model: &model,
            repository: Some(repository.path()),
            listen,
            context: 0,
            parallel: 1,
            max_tokens: 0,
        });
        Self {
            process: Command::new(&command[0]).args(&command[1..]).spawn().unwrap(),
            address: listen.to_string(),
            _repository: repository,
        }
    }

    /// Returns the names of the regions of shared memory that it knows.
    fn regions(&self) -> String {
        self.request("GET /v2/systemsharedmemory/status", "")
    }

    /// Registers a region of shared memory as a process did that has ended, and returns its name.
    fn register_stale(&self) -> String {
        let mut ended = Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
        let namespace: String = namespace
            .to_string_lossy()
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        let name = format!("regatta-{namespace}-{}-5-0", ended.id());
        let file = Path::new("/dev/shm").join(&name);
        fs::write(&file, [0; 64]).unwrap();
        let body = format!("{{\"key\":\"/{name}\",\"offset\":0,\"byte_size\":64}}");
        let answer = self.request(
            &format!("POST /v2/systemsharedmemory/region/{name}/register"),
            &body,
        );
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        fs::remove_file(file).unwrap();
        name
    }

    fn request(&self, what: &str, body: &str) -> String {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        // Triton does not find a path that arrives in pieces.
        let request = format!(
            "{what} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for UserTriton {
    fn drop(&mut self) {
        // Killed, it would leave its backend's processes.
        let pid = Pid::from_child(&self.process);
        kill_process(pid, Signal::TERM).unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn a_triton_that_runs_already_computes_its_own_network() {
    let Some(python) = oracle::triton() else { return };
    let mut resnet = Resnet::new(&python, true);
    resnet.driver = resnet
        .driver
        .replace("[kserve]", "[kserve]\nnetwork = \"photographs\"");
    let mut triton = UserTriton::start(&resnet);
    let begun = Instant::now();
    while TcpStream::connect(&triton.address).is_err() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "Triton does not listen"
        );
        thread::sleep(Duration::from_millis(50));
    }
    let tract = resnet.configure(EngineKind::Tract, &[]);
    let mut tract = resnet.load(&*tract, 1).unwrap();
    let expected = infer(&mut *tract.engines[0], &[1, 2, 3]);
    let address = triton.address.clone();
    let settings = [("server_address", address.as_str())];
    let stale = triton.register_stale();
    assert!(triton.regions().contains(&stale));
    for _ in 0..2 {
        let backend = resnet.configure(EngineKind::Server, &settings);
        let mut loaded = resnet.load(&*backend, 2).unwrap();
        assert_near(&infer(&mut *loaded.engines[1], &[1, 2, 3]), &expected);
        assert_eq!(loaded.description.version, "Triton 2.51.0");
        assert_eq!(loaded.description.runs_on, format!("tritonserver at {address}"));
        assert_eq!(backend.end_run().map_err(|error| chain(&error)), Ok(Vec::new()));
        let regions = triton.regions();
        assert!(
            regions.contains("regatta-") && !regions.contains(&stale),
            "{regions}"
        );
        drop((loaded, backend));
        assert!(!triton.regions().contains("regatta-"), "{}", triton.regions());
        let evidence = fs::read(resnet.dir.path().join("server.json")).unwrap();
        let evidence: serde_json::Value = serde_json::from_slice(&evidence).unwrap();
        assert_eq!(evidence["network_config"]["name"], "photographs", "{evidence}");
        assert_eq!(evidence["network_config"]["max_batch_size"], 4, "{evidence}");
        assert_eq!(evidence["pid"], triton.process.id(), "{evidence}");
        assert!(evidence["model"].is_null(), "{evidence}");
        assert_eq!(evidence["is_model_stated"], false, "{evidence}");
    }
    assert!(triton.process.try_wait().unwrap().is_none());
    assert!(!resnet.dir.path().join("config.pbtxt").exists());

    resnet.driver = resnet.driver.replace("photographs", "drawings");
    let backend = resnet.configure(EngineKind::Server, &settings);
    let error = resnet.load(&*backend, 1).err().unwrap();
    assert!(
        error.contains("does not describe the network drawings") && error.contains("`kserve.network`"),
        "{error}"
    );
}

fn infer_as_another_client(resnet: &Resnet) {
    let evidence = fs::read(resnet.dir.path().join("server.json")).unwrap();
    let evidence: serde_json::Value = serde_json::from_slice(&evidence).unwrap();
    let words: Vec<&str> = evidence["command"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|word| word.as_str())
        .collect();
    let place = words.iter().position(|word| *word == "--http-port").unwrap();
    let mut connection = TcpStream::connect(("127.0.0.1", words[place + 1].parse().unwrap())).unwrap();
    let zeros = vec!["0"; 3 * 224 * 224].join(",");
    let body = format!(
        "{{\"inputs\":[{{\"name\":\"input_tensor:0\",\"datatype\":\"FP32\",\"shape\":[1,3,224,224],\"data\":[{zeros}]}}]}}"
    );
    write!(
        connection,
        "POST /v2/models/network/infer HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn networks_that_triton_does_not_serve_are_explained() {
    let Some(python) = oracle::triton() else { return };
    let mut resnet = Resnet::new(&python, true);
    fs::write(resnet.dir.path().join("model.onnx"), "half a network").unwrap();
    let error = resnet.refusal();
    assert!(
        error.contains("ended with exit code 1; it printed last:"),
        "{error}"
    );

    let other = onnx::classifier(&onnx::Shape::default());
    fs::write(resnet.dir.path().join("model.onnx"), other).unwrap();
    let error = resnet.refusal();
    assert!(
        error.contains("does not fit the benchmark resnet50: it takes FP32")
            && error.contains("but a sample is fp32 linear [3, 224, 224]"),
        "{error}"
    );

    resnet.driver = resnet
        .driver
        .replace("backend = \"python\"", "backend = \"onnxruntime\"");
    let error = resnet.refusal();
    assert!(
        error.contains("ended with exit code 1; it printed last:"),
        "{error}"
    );
}

#[test]
fn the_output_of_an_answer_is_found_by_its_name_on_triton() {
    let Some(python) = oracle::triton() else { return };
    let mut resnet = Resnet::new(&python, true);
    let tract = resnet.configure(EngineKind::Tract, &[]);
    let mut tract = resnet.load(&*tract, 1).unwrap();
    let both = infer(&mut *tract.engines[0], &[1, 2]);
    resnet.benchmark.model.response = Response::Raw;
    resnet.benchmark.model.outputs = vec!["softmax_tensor:0".to_owned()];
    let backend = resnet.configure(EngineKind::Server, &[]);
    let mut loaded = resnet.load(&*backend, 1).unwrap();
    let scores = infer(&mut *loaded.engines[0], &[1, 2]);
    // The first output is the class, in 8 bytes.
    let both_found: Vec<Vec<u8>> = both
        .iter()
        .zip(&scores)
        .map(|(both, scores)| [&both[..8], scores].concat())
        .collect();
    assert_near(&both_found, &both);
}

#[test]
fn answers_that_are_too_large_are_refused_before_the_run() {
    let Some(python) = oracle::triton() else { return };
    let mut resnet = Resnet::new(&python, false);
    resnet.batch = 20_000;
    let error = resnet.refusal();
    assert!(
        error.contains("the outputs of 20000 samples have 76 MiB, and an answer may have 63; hint: a smaller `batch_size`"),
        "{error}"
    );
}

#[test]
fn benchmarks_without_a_network_are_refused() {
    let bench = Bench::new();
    let path = bench.dir.path().join("driver.toml");
    let (_, text) = servers::texts().find(|(name, _)| *name == "triton").unwrap();
    fs::write(&path, text).unwrap();
    let error = bench.load_with(&path, 1).err().unwrap();
    assert!(error.contains("its answers are generated tokens"), "{error}");
    let error = bench
        .configure_with(Path::new("triton"), &[("server_context", "64")])
        .err()
        .unwrap();
    assert!(
        error.contains(
            "server_context has no effect with the server's driver: only servers that generate tokens"
        ),
        "{error}"
    );
}

#[test]
fn faults_of_drivers_of_networks_are_named() {
    let (_, text) = servers::texts().find(|(name, _)| *name == "triton").unwrap();
    for (from, to, expected) in [
        ("\"{repository}\"", "\"/models\"", "`command` has no {repository}"),
        ("\"model.onnx\" = \"{model}\"", "", "`kserve.files` is empty"),
        ("\"model.onnx\" =", "\"\" =", "`kserve.files` has \"\""),
        ("\"{model}\"", "\"model.onnx\"", "neither absolute nor {model}"),
        (
            "shared_memory",
            "network = \"a/b\"\nshared_memory",
            "`kserve.network` is \"a/b\"",
        ),
        (
            "\"{host}\"",
            "\"{context}\"",
            "`{context}` is for servers that generate tokens",
        ),
        (
            "[kserve]",
            "[loaded_model]\npath = \"/\"\nmodel = \"/\"\n[kserve]",
            "`loaded_model` is for servers that generate tokens",
        ),
        (
            "requests = ",
            "tokens = \"/t\", requests = ",
            "`activity.tokens` is for servers",
        ),
        (
            "{network}",
            "{name}",
            "{name} is not a placeholder; known are network",
        ),
        (
            "\"model.onnx\" =",
            "\"../model.onnx\" =",
            "is not the name of a file",
        ),
        (
            "= \"{model}\"",
            "= \"{port}\"",
            "{port} is not a placeholder; known are model",
        ),
        (
            "[kserve]",
            "[generate]\npath = \"/\"\nbody = '{\"p\":{prompt}}'\ntokens = \"/t\"\n[kserve]",
            "has `generate` or `transcribe` beside `kserve`",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let error = ServerDriver::from_toml("mine", &text.replacen(from, to, 1))
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{expected} in {error}");
    }
    let (_, tokens) = servers::texts().find(|(name, _)| *name == "llama-cpp").unwrap();
    let error = ServerDriver::from_toml("mine", &tokens.replace("{context}", "{repository}")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("{repository} is only for drivers with `kserve`"),
        "{error}"
    );
}
