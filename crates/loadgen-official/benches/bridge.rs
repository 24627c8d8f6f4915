//! Measures the cost of the Rust side per query.
//!
//! First it measures the bridge alone, under a fake LoadGen that only issues (`fake_loadgen.c`), against a SUT in C. Then it
//! measures under the official LoadGen 6.0.17, against a SUT in C behind the C interface (`driver.c`). Rounds alternate. Minima
//! are shown, because other load only adds time; the repeated first column shows the noise.
//!
//! `cargo bench -p regatta-loadgen-official`; queries and rounds may be given after `--`.

#![expect(clippy::unwrap_used, reason = "a bench may say what it expects")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use regatta_loadgen::{
    load_gen::{LoadGen, NoObserver},
    request::RunRequest,
};
use regatta_loadgen_official::Plugin;
use regatta_mllog::read::summary_file;
use regatta_test_support::{null_sut, official_loadgen};
use regatta_types::{Mode, Scenario};

fn main() {
    let numbers: Vec<u64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let queries = numbers.first().copied().unwrap_or(500_000);
    let rounds = numbers.get(1).copied().unwrap_or(11);
    let directory = tempfile::tempdir().unwrap();
    let logs = directory.path();
    let compile = |sources: &[&str], flags: &[&str], name: &str| compile(logs, sources, flags, name);
    println!("ns per query, {queries} queries, {rounds} rounds, minima");

    let fake = Plugin::open(&compile(
        &["crates/loadgen-official/benches/fake_loadgen.c"],
        &["-shared", "-fPIC"],
        "fake.so",
    ))
    .unwrap();
    let itself = std::env::current_exe().unwrap();
    if std::env::var_os("FAKE_DIRECT").is_some() {
        // The child process: one round with the SUT in C, with its figure on standard output.
        for scenario in [Scenario::SingleStream, Scenario::MultiStream] {
            println!("{}", alone(&fake, logs, scenario, queries));
        }
        return;
    }
    let direct = |position: usize| {
        let child = Command::new(&itself)
            .arg(queries.to_string())
            .env("FAKE_DIRECT", "1")
            .output()
            .unwrap();
        String::from_utf8(child.stdout)
            .unwrap()
            .lines()
            .nth(1 + position)
            .unwrap()
            .parse()
            .unwrap()
    };
    for (position, scenario) in [Scenario::SingleStream, Scenario::MultiStream]
        .into_iter()
        .enumerate()
    {
        let rust = || alone(&fake, logs, scenario, queries);
        compare("bridge alone", scenario, rounds, || direct(position), rust);
    }

    let Some(file) = official_loadgen::plugin_file("6.0.17") else {
        return;
    };
    let driver = compile(
        &["crates/loadgen-official/bridge/driver.c"],
        &["-pthread", "-ldl"],
        "driver",
    );
    let plugin = Plugin::open(&file).unwrap();
    let scenario = Scenario::SingleStream;
    let rust = || official(&plugin, logs, scenario, queries);
    compare(
        "LoadGen 6.0.17",
        scenario,
        rounds,
        || in_c(&driver, &file, logs, scenario, queries),
        rust,
    );
}

fn compare(what: &str, scenario: Scenario, rounds: u64, c: impl Fn() -> f64, rust: impl Fn() -> f64) {
    let mut best = [f64::INFINITY; 3];
    for _ in 0..rounds {
        for (best, value) in best.iter_mut().zip([c(), rust(), c()]) {
            *best = best.min(value);
        }
    }
    let [c, rust, again] = best;
    println!(
        "{what:15} {scenario:13} C {c:7.1}   Rust {rust:7.1}   C again {again:7.1}   Rust - C {:+6.1}",
        rust - c.min(again)
    );
}

fn compile(directory: &Path, sources: &[&str], flags: &[&str], name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = directory.join(name);
    let mut compiler = Command::new("cc");
    compiler
        .arg("-O2")
        .arg("-I")
        .arg(root.join("crates/loadgen-official/bridge"))
        .arg("-o")
        .arg(&target);
    compiler.args(sources.iter().map(|s| root.join(s))).args(flags);
    assert!(compiler.status().unwrap().success());
    target
}

fn request(logs: &Path, scenario: Scenario, queries: u64) -> RunRequest {
    let mut request = RunRequest::new("null", scenario, Mode::PerformanceOnly, logs);
    request.overrides.min_duration = Some(std::time::Duration::ZERO);
    request.overrides.min_query_count = Some(queries);
    request
}

fn alone(fake: &Plugin, logs: &Path, scenario: Scenario, queries: u64) -> f64 {
    let (sut, qsl) = (null_sut::Null::default(), null_sut::Samples::new(8, 8));
    // The fake LoadGen writes no logs, which is reported as an error.
    let _ = fake
        .loadgen_as_requested()
        .run(&sut, &qsl, &request(logs, scenario, queries), &NoObserver);
    fs::read_to_string(logs.join("ns"))
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

fn in_c(driver: &Path, plugin: &Path, logs: &Path, scenario: Scenario, queries: u64) -> f64 {
    let run = Command::new(driver)
        .args([plugin, logs])
        .args([scenario.as_str(), &queries.to_string()])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    ns_per_query(logs)
}

fn official(plugin: &Plugin, logs: &Path, scenario: Scenario, queries: u64) -> f64 {
    let (sut, qsl) = (null_sut::Null::default(), null_sut::Samples::new(1024, 1024));
    let mut request = request(logs, scenario, queries);
    request.mlperf_conf = Some(null_sut::conf(
        "*.*.sample_index_rng_seed = 2747215439041700203\n",
    ));
    let outcome = plugin
        .loadgen_as_requested()
        .run(&sut, &qsl, &request, &NoObserver)
        .unwrap();
    assert!(outcome.faults.is_empty(), "{:?}", outcome.faults);
    ns_per_query(logs)
}

fn ns_per_query(logs: &Path) -> f64 {
    let summary = summary_file(&logs.join("mlperf_log_summary.txt")).unwrap();
    1e9 / summary
        .statistic("QPS w/ loadgen overhead")
        .unwrap()
        .number()
        .unwrap()
}
