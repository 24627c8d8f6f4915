//! Tests the bundled benchmark's queries against recorded ones of the official LoadGen 6.0.17, built by g++ 12 and by g++ 10.
//! They serve machines without an official LoadGen, which the equality tests run.
#![expect(clippy::unwrap_used, reason = "a test may say what it expects")]

mod recorded;

use std::{fs, path::Path, sync::Mutex};

use recorded::{BY_LIBSTDCXX_10, BY_LIBSTDCXX_12, Golden};
use regatta_catalogue::round::{Round, render_conf_lines};
use regatta_loadgen::{
    NativeLoadGen,
    effective::{EffectiveSettings, LibraryCounts},
    generate::{Pass, QueryPlan, loadable_sets},
    load_gen::{LoadGen, NoObserver},
    request::{ConfText, RunRequest},
    rng::RngAbi,
    sut::{Completer, Query, QuerySampleResponse, ResidentLibrary, SutError, SystemUnderTest},
};
use regatta_types::{Mode, Scenario, benchmark::Benchmark};

/// FNV-1a over whole words.
fn hash(words: &[u64]) -> u64 {
    words.iter().fold(0xCBF2_9CE4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// The bundled benchmark with the conf of v6.1, 900 queries and 200 ms at least; and its library.
fn request(scenario: Scenario, mode: Mode, log_dir: &Path) -> (RunRequest, LibraryCounts) {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let read = |name: &str| fs::read_to_string(configs.join(name)).unwrap();
    let round = Round::from_toml(&read("rounds/v6.1.toml")).unwrap();
    let digits = Benchmark::from_toml(&read("benchmarks/digits.toml")).unwrap();
    let mut user_conf = String::new();
    render_conf_lines(&mut user_conf, &digits.user_conf);
    user_conf.push_str("*.*.min_duration = 200\n*.*.min_query_count = 900\n");

    let mut request = RunRequest::new(&digits.loadgen_model, scenario, mode, log_dir);
    request.mlperf_conf = Some(ConfText::new(
        "mlperf.conf",
        round.render_mlperf_conf(&digits.mlperf_conf),
    ));
    request.user_conf = Some(ConfText::new("user.conf", user_conf));
    let library = LibraryCounts {
        total: digits.dataset.total_samples as u64,
        performance: digits.dataset.performance_samples as u64,
    };
    (request, library)
}

#[test]
fn the_bundled_benchmark_is_issued_as_recorded() {
    compare(RngAbi::Libstdcxx11, &BY_LIBSTDCXX_12);
}

#[test]
fn with_older_random_numbers_it_is_issued_as_an_older_compiler_has_it() {
    compare(RngAbi::Libstdcxx10, &BY_LIBSTDCXX_10);
}

fn compare(abi: RngAbi, recorded: &[Golden]) {
    for recorded in recorded {
        let (request, library) = request(recorded.scenario, recorded.mode, Path::new("."));
        let (settings, _) = EffectiveSettings::new(&request.resolve().unwrap().settings, library);
        let (pass, requested) = match recorded.mode {
            Mode::AccuracyOnly => (Pass::Accuracy, settings.accuracy_sample_count),
            _ => (Pass::Performance, settings.performance_sample_count),
        };
        let mut sets = loadable_sets(&settings, library.total, requested, abi).unwrap();
        if pass == Pass::Performance {
            sets.truncate(1);
        }
        let (mut issued, mut schedule) = (Vec::new(), Vec::new());
        for set in &sets {
            let plan = QueryPlan::new(&settings, set, pass, abi).unwrap();
            if recorded.scenario == Scenario::Offline {
                let samples = plan.offline_samples();
                issued.extend((0..samples.len()).map(|position| samples.index(position) as u64));
                issued.push(u64::MAX);
                schedule.push(0);
                continue;
            }
            let mut source = plan.source();
            while let Some((samples, due_ns)) = source.next_query() {
                issued.extend(samples.iter().map(|&index| index as u64));
                issued.push(u64::MAX);
                schedule.push(due_ns.cast_unsigned());
            }
        }
        let name = format!("{} {}", recorded.scenario, recorded.mode);
        let first: Vec<u64> = issued
            .iter()
            .copied()
            .filter(|&word| word != u64::MAX)
            .take(6)
            .collect();
        assert_eq!(first, recorded.first, "{name}");
        assert_eq!((issued.len(), hash(&issued)), recorded.issue_log, "{name}");
        assert_eq!((schedule.len(), hash(&schedule)), recorded.schedule, "{name}");
    }
}

/// A SUT that records the issued samples, and answers at once.
#[derive(Default)]
struct Noting(Mutex<Vec<u64>>);

impl SystemUnderTest for Noting {
    fn name(&self) -> &str {
        "noting"
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        let mut issued = self.0.lock().unwrap();
        for sample in query.iter() {
            issued.push(sample.index as u64);
            completer.complete(&[QuerySampleResponse::new(sample.id, &[])]);
        }
        issued.push(u64::MAX);
        Ok(())
    }
}

#[test]
fn a_run_draws_the_requested_random_numbers_and_records_which() {
    for (abi, name, recorded) in [
        (RngAbi::Libstdcxx11, "libstdc++-11", BY_LIBSTDCXX_12),
        (RngAbi::Libstdcxx10, "libstdc++-10", BY_LIBSTDCXX_10),
    ] {
        for recorded in recorded.iter().filter(|golden| golden.mode == Mode::AccuracyOnly) {
            let dir = tempfile::tempdir().unwrap();
            let (mut request, library) = request(recorded.scenario, recorded.mode, dir.path());
            request.rng_abi = abi;
            let sut = Noting::default();
            let count = |samples: u64| usize::try_from(samples).unwrap();
            let library = ResidentLibrary::new("library", count(library.total))
                .with_performance_samples(count(library.performance));
            let outcome = NativeLoadGen.run(&sut, &library, &request, &NoObserver).unwrap();
            let issued = sut.0.into_inner().unwrap();
            assert_eq!(outcome.identity.rng_abi, name);
            assert_eq!(
                (issued.len(), hash(&issued)),
                recorded.issue_log,
                "{name} {}",
                recorded.scenario
            );
        }
    }
}
