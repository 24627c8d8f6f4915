//! Measures what the client of the engine `server` adds to a request, beside the request function of the reference's `SUT_API.py`, over the same
//! server, in turns. The server answers at once with a fixed text of 128 tokens, as vLLM would; prompts have 800 tokens.
//!
//! `cargo bench -p regatta-engines --bench server_client`. `REGATTA_INFERENCE_CLONE` names a clone of mlcommons/inference, whose file is run
//! unmodified, and `REGATTA_PYTHON` (python3) a Python with `requests` and NumPy; without them ours is measured alone. The packages of language
//! models that the file imports are replaced by empty ones: the function does not use them. The floor is a request and an answer over a plain
//! socket. `REGATTA_BENCH_ROUNDS` (5) and `REGATTA_BENCH_REQUESTS` (1000) set how often.

mod null_server;

use std::{
    env,
    error::Error,
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Instant,
};

use regatta_catalogue::known;
use regatta_engines::{Answers, Batch, EngineRequest, Input, LoadRequest, Loaded, SequenceBuckets};
use regatta_types::{Scenario, benchmark::Benchmark, documents::EngineKind, engine_settings::EngineSettings};

type AnyError = Box<dyn Error>;

const PROMPT: usize = 800;
/// The function that sends requests, in the reference implementation.
const REFERENCE: &str = "HEAD:language/llama2-70b/SUT_API.py";
const RUN_REFERENCE: &str = include_str!("reference.py");

fn main() -> Result<(), AnyError> {
    let words: Vec<String> = env::args().collect();
    if let [_, option, port] = words.as_slice()
        && option == null_server::OPTION
    {
        return null_server::serve(port.parse()?);
    }
    // `cargo bench` says so; test runners that look into every target do not.
    if !words.iter().any(|word| word == "--bench") {
        return Ok(());
    }
    let number = |name: &str, usual: usize| {
        let set = env::var(name).ok().and_then(|value| value.parse().ok());
        set.unwrap_or(usual)
    };
    let (rounds, requests) = (
        number("REGATTA_BENCH_ROUNDS", 5),
        number("REGATTA_BENCH_REQUESTS", 1000),
    );
    let dir = tempfile::tempdir()?;
    let benchmark = known::benchmarks()?
        .into_iter()
        .find(|benchmark| benchmark.name == "llama3.1-8b-edge")
        .ok_or("no llama3.1-8b-edge")?;
    let mut engines = [
        load(dir.path(), &benchmark, false)?,
        load(dir.path(), &benchmark, true)?,
    ];
    // The port of the server that the engine has started.
    let server = fs::read_to_string(dir.path().join("server.json"))?;
    let server: serde_json::Value = serde_json::from_str(&server)?;
    let port = server["command"]
        .as_array()
        .and_then(|words| words.last()?.as_str());
    let port: u16 = port.ok_or("server.json has no port")?.parse()?;
    let reference = reference(dir.path());
    if reference.is_none() {
        println!(
            "the reference is not measured: REGATTA_INFERENCE_CLONE names no clone of mlcommons/inference"
        );
    }
    let sample = sample(&benchmark)?;
    let [mut floor, mut ours, mut streaming, mut theirs] = [const { Vec::new() }; 4];
    for _ in 0..rounds {
        floor.push(plain(port, requests)?);
        ours.push(infer(&mut engines[0], &sample, requests)?);
        streaming.push(infer(&mut engines[1], &sample, requests)?);
        if let Some(script) = &reference {
            theirs.push(run_reference(script, port, requests)?);
        }
    }
    println!("time of a request in microseconds, median of {rounds} rounds of {requests} requests");
    let floor = median(&mut floor);
    let line =
        |name: &str, time: f64| println!("{name:<34} {time:>9.1} {:>9.1} above the socket", time - floor);
    line("a plain socket", floor);
    let ours = median(&mut ours);
    line("ours", ours);
    line("ours, streaming 128 events", median(&mut streaming));
    if reference.is_some() {
        let theirs = median(&mut theirs);
        line("the reference's query_api_vllm", theirs);
        println!(
            "ours adds {:.3} of what the reference adds",
            (ours - floor) / (theirs - floor)
        );
    }
    Ok(())
}

/// Loads the engine, which starts this program as its server.
fn load(dir: &Path, benchmark: &Benchmark, is_streaming: bool) -> Result<Loaded, AnyError> {
    let driver = dir.join("null.toml");
    let program = env::current_exe()?;
    let text = format!(
        "schema = 1\ntitle = \"null\"\ncommand = [{:?}, \"{}\", \"{{port}}\"]\nready = {{ path = \"/health\", within_s = 20 }}\n\
         [generate]\npath = \"/v1/completions\"\n\
         body = '{{\"model\":\"null\",\"prompt\":{{prompt}},\"max_tokens\":{{max_tokens}},\"stream\":{{stream}}}}'\n\
         tokens = \"/choices/0/token_ids\"\ncount = \"/usage/completion_tokens\"\n",
        program.display().to_string(),
        null_server::OPTION
    );
    fs::write(&driver, text)?;
    fs::write(dir.join("model"), "")?;
    let driver = driver.display().to_string();
    let settings = EngineSettings::parse(EngineKind::Server, [("server", driver.as_str())])?;
    let backend = regatta_engines::configure(
        EngineKind::Server,
        &EngineRequest {
            settings: &settings,
            scenario: Scenario::Server,
            model: &benchmark.model,
            scratch: Some(dir),
            sends_first_tokens: is_streaming,
            files: dir,
        },
    )?;
    let request = LoadRequest {
        benchmark,
        model_file: dir.join("model"),
        image_sizes: Arc::default(),
        volumes: Arc::default(),
        sequences: Arc::new(SequenceBuckets::default()),
        batch_sizes: &[1],
        takes_any_batch: false,
        streams: 1,
    };
    Ok(regatta_engines::load(&*backend, &request, None)?)
}

/// Returns a prompt with its padding and its number of tokens.
fn sample(benchmark: &Benchmark) -> Result<Vec<u8>, AnyError> {
    let longest = benchmark
        .model
        .prompt_inputs()
        .ok_or("its samples are not prompts")?
        .longest;
    let mut values = vec![0_i32; longest];
    for (value, token) in values.iter_mut().zip(20_000..).take(PROMPT) {
        *value = token;
    }
    values.push(i32::try_from(PROMPT)?);
    Ok(values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

/// Returns the mean time of a request to the engine, in microseconds.
fn infer(loaded: &mut Loaded, sample: &[u8], requests: usize) -> Result<f64, AnyError> {
    let batch = Batch {
        samples: &[0],
        input: Input::Contiguous(sample),
    };
    let mut answers = Answers::default();
    let begun = Instant::now();
    for _ in 0..requests {
        answers.clear();
        loaded.engines[0].infer_streaming(&batch, &mut answers, &mut |_, _| {})?;
        if answers.token_counts().next() != i64::try_from(null_server::TOKENS).ok() {
            return Err("the answer has another number of tokens".into());
        }
    }
    Ok(begun.elapsed().as_secs_f64() * 1e6 / requests as f64)
}

/// Returns the mean time of an exchange over a socket that stays open, in microseconds.
fn plain(port: u16, requests: usize) -> Result<f64, AnyError> {
    let mut socket = TcpStream::connect(("127.0.0.1", port))?;
    socket.set_nodelay(true)?;
    let prompt: Vec<String> = (20_000..)
        .take(PROMPT)
        .map(|token: i32| token.to_string())
        .collect();
    let body = format!("{{\"prompt\":[{}],\"stream\":false}}", prompt.join(","));
    let request = format!(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut answer = vec![0; null_server::answer().len()];
    let begun = Instant::now();
    for _ in 0..requests {
        socket.write_all(request.as_bytes())?;
        socket.read_exact(&mut answer)?;
    }
    Ok(begun.elapsed().as_secs_f64() * 1e6 / requests as f64)
}

/// Writes the reference's file beside the program that runs its function. Returns that program's path.
fn reference(dir: &Path) -> Option<std::path::PathBuf> {
    let clone = env::var_os("REGATTA_INFERENCE_CLONE")?;
    let output = Command::new("git")
        .arg("-C")
        .arg(clone)
        .args(["show", REFERENCE])
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    let program = dir.join("reference.py");
    fs::write(dir.join("SUT_API.py"), output.stdout).ok()?;
    fs::write(&program, RUN_REFERENCE).ok()?;
    Some(program)
}

/// Returns the mean time of a request of the reference, in microseconds, which its program prints.
fn run_reference(program: &Path, port: u16, requests: usize) -> Result<f64, AnyError> {
    let python = env::var_os("REGATTA_PYTHON").unwrap_or_else(|| "python3".into());
    let output = Command::new(python)
        .arg(program)
        .args([port.to_string(), requests.to_string(), PROMPT.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err("the reference's program failed".into());
    }
    // The function prints a line per request.
    let text = String::from_utf8(output.stdout)?;
    let last = text
        .lines()
        .last()
        .ok_or("the reference's program printed nothing")?;
    Ok(last.parse()?)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
