//! Tests of the built-in configuration files: each is readable, consistent and in the binary.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use regatta_catalogue::{known, round::Round, system::System};
use regatta_types::{
    Scenario,
    benchmark::{Benchmark, Prep},
};

fn files_in(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../configs")
        .join(directory);
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn names_in(directory: &str) -> BTreeSet<String> {
    let files = files_in(directory).into_iter();
    files
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect()
}

/// The binaries carry the files without comments, but lines of official files that begin with `#` are not comments.
#[test]
fn carried_files_have_the_values_of_the_files() {
    let read = |path: &PathBuf| fs::read_to_string(path).unwrap();
    for path in files_in("rounds") {
        let round = Round::from_toml(&read(&path)).unwrap();
        assert!(known::rounds().unwrap().contains(&round), "{}", path.display());
    }
    for path in files_in("benchmarks") {
        let benchmark = Benchmark::from_toml(&read(&path)).unwrap();
        assert!(
            known::benchmarks().unwrap().contains(&benchmark),
            "{}",
            path.display()
        );
    }
    for path in files_in("systems") {
        let system = System::from_toml(&read(&path)).unwrap();
        assert!(known::systems().unwrap().contains(&system), "{}", path.display());
    }
}

#[test]
fn every_benchmark_file_is_carried_and_named_after_its_benchmark() {
    let known: BTreeSet<String> = known::benchmarks()
        .unwrap()
        .into_iter()
        .map(|benchmark| benchmark.name)
        .collect();
    assert_eq!(known, names_in("benchmarks"));
}

#[test]
fn every_round_file_is_carried_and_named_after_its_round() {
    let known: BTreeSet<String> = known::rounds()
        .unwrap()
        .into_iter()
        .map(|round| round.name)
        .collect();
    assert_eq!(known, names_in("rounds"));
    assert_eq!(known::round_names().next(), Some("v2.0"), "the oldest first");
    assert_eq!(known::round_names().next_back(), Some("v6.1"));
    for name in known::round_names() {
        assert_eq!(known::round(name).unwrap().unwrap().name, name);
    }
    assert!(known::round("v0.1").unwrap().is_none());
}

#[test]
fn every_system_file_is_carried_and_named_after_its_system() {
    let known: BTreeSet<String> = known::systems()
        .unwrap()
        .into_iter()
        .map(|system| system.name)
        .collect();
    assert_eq!(known, names_in("systems"));
    assert!(known::system_texts().all(|(name, _)| known.contains(name)));
}

#[test]
fn no_two_benchmarks_answer_to_one_name() {
    let mut seen = BTreeSet::new();
    for benchmark in known::benchmarks().unwrap() {
        for name in std::iter::once(&benchmark.name).chain(&benchmark.aliases) {
            assert!(seen.insert(name.clone()), "{name} means two benchmarks");
        }
    }
}

#[test]
fn benchmarks_agree_with_themselves() {
    for benchmark in known::benchmarks().unwrap() {
        let name = &benchmark.name;
        assert!(
            benchmark.dataset.performance_samples <= benchmark.dataset.total_samples,
            "{name}"
        );
        assert!((0.0..=1.0).contains(&benchmark.accuracy.factor), "{name}");
        assert!(
            benchmark.accuracy.target() <= benchmark.accuracy.reference,
            "{name}"
        );
        if let Some(sha256) = &benchmark.model.sha256 {
            assert!(
                sha256.len() == 64
                    && sha256
                        .bytes()
                        .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            );
        }
        for key in benchmark.mlperf_conf.keys().chain(benchmark.user_conf.keys()) {
            let parts: Vec<&str> = key.split('.').collect();
            let [model, scenario, _] = parts[..] else {
                panic!("{name}: {key} is not a model.scenario.key")
            };
            assert!(model == benchmark.loadgen_model || model == "*", "{name}: {key}");
            assert!(
                scenario == "*" || scenario.parse::<Scenario>().is_ok(),
                "{name}: {key}"
            );
        }
    }
}

#[test]
fn an_unknown_key_in_a_benchmark_file_is_named_with_its_line() {
    let text = include_str!("../../../configs/benchmarks/digits.toml");
    let Some(Prep::CsvImages { skip_rows, .. }) = Benchmark::from_toml(text).unwrap().prep else {
        panic!("digits is prepared from a table of images");
    };
    assert_eq!(skip_rows, 1200);
    for (from, to, named) in [
        ("total_samples = 597", "total_sample = 597", "total_sample"),
        ("divisor = 16.0", "divisor = 16.0\nmultiplier = 2", "multiplier"),
        ("kind = \"csv-images\"", "kind = \"tarball\"", "tarball"),
        ("metric = \"top1\"", "metric = \"top2\"", "top2"),
    ] {
        let error = Benchmark::from_toml(&text.replace(from, to))
            .unwrap_err()
            .to_string();
        assert!(error.contains(named) && error.contains("line"), "{error}");
    }
}
