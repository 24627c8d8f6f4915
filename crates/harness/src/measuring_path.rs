//! Tests of the path between a query's issue and its answer. LoadGen, harness and engine on one thread must not
//! allocate. With workers, the issuing thread must not allocate.

use std::cell::Cell;

use regatta_engines::subjects::{Subject, sim_units, subjects};
use regatta_loadgen::{
    NativeLoadGen,
    load_gen::{LoadGen as _, NoObserver},
    request::{ConfText, RunRequest},
    sut::{Completer, Query, SutError, SystemUnderTest},
};
use regatta_loadgen_conf::TestSettings;
use regatta_test_support::{counting_allocator::allocations, fixture::Fixture};
use regatta_types::engine_settings::{EngineSettings, SimUnits};
use regatta_types::{Mode, Scenario, documents::EngineKind};

use super::*;

/// Returns the number of queries after which all buffers have their size. Offline has one query, so buffers must be
/// ready before it.
const fn warm_after(scenario: Scenario) -> u64 {
    match scenario {
        Scenario::Offline => 0,
        Scenario::SingleStream | Scenario::MultiStream | Scenario::Server => 3,
    }
}

thread_local! {
    /// The issuing thread's allocations when warm and after its last query, and the number of queries.
    static SEEN: Cell<(u64, u64, u64)> = const { Cell::new((0, 0, 0)) };
}

/// A SUT that reads the allocation counter before the first counted query and after every query.
struct Watched<'a> {
    sut: &'a dyn SystemUnderTest,
    warm_after: u64,
}

impl SystemUnderTest for Watched<'_> {
    fn name(&self) -> &str {
        self.sut.name()
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        let (warm, _, queries) = SEEN.get();
        let warm = if queries == self.warm_after {
            allocations()
        } else {
            warm
        };
        let issued = self.sut.issue_query(query, completer);
        SEEN.set((warm, allocations(), queries + 1));
        issued
    }

    fn flush_queries(&self) -> Result<(), SutError> {
        self.sut.flush_queries()
    }
}

fn allocations_of(subject: &Subject, scenario: Scenario, settings: &EngineSettings) -> (u64, u64) {
    let (fixture, logs) = (Fixture::new(), tempfile::tempdir().unwrap());
    let batch = if scenario == Scenario::MultiStream { 8 } else { 1 };
    let tensorrt = match &settings.sequence_lengths {
        None => subject.tensorrt_request(&fixture, "fp32", batch, 1),
        Some(lengths) => {
            fixture.take_sequences();
            let sequences = SequenceBuckets::new(lengths.tokens().to_vec(), std::iter::empty());
            subject.request_of_sequences(&fixture, batch, 1, &sequences)
        }
    };
    let mut request = RunRequest::new("pixels", scenario, Mode::PerformanceOnly, logs.path());
    let conf = "*.*.min_query_count = 500\n*.*.max_query_count = 500\n*.*.min_duration = 0\n\
                *.Server.target_qps = 5000\n";
    request.user_conf = Some(ConfText::new("user.conf", conf));
    let test = TestSettings::new(scenario, Mode::PerformanceOnly);
    let benchmark = fixture.benchmark();
    let harness_request = HarnessRequest {
        benchmark: &benchmark,
        engine: subject.kind,
        settings,
        test: &test,
        scratch: Some(fixture.scratch()),
        files: fixture.scratch(),
        learn: false,
    };
    let engine_request = EngineRequest {
        settings,
        scenario,
        model: &benchmark.model,
        scratch: Some(fixture.scratch()),
        sends_first_tokens: false,
        files: fixture.scratch(),
    };
    let backend = subject.backend(&engine_request, tensorrt).unwrap();
    let dataset = Dataset::open(&harness_request).unwrap();
    let harness = Harness::with_engine(&harness_request, dataset, backend.as_ref(), None).unwrap();
    SEEN.set((0, 0, 0));
    let watched = Watched {
        sut: harness.sut(),
        warm_after: warm_after(scenario),
    };
    NativeLoadGen
        .run(&watched, harness.library(), &request, &NoObserver)
        .unwrap();
    let (warm, last, queries) = SEEN.get();
    (last - warm, queries)
}

#[test]
fn the_measuring_path_allocates_nothing() {
    let mut settings = EngineSettings {
        // For an Offline query on the issuing thread, the warm-up sizes the answer buffer.
        warmup_duration: Some(Duration::from_millis(1)),
        ..EngineSettings::default()
    };
    for units in ["gpu=20+0", "gpu=20+0,dla0=30+0"] {
        let modelled: SimUnits = sim_units(units);
        let several = modelled.0.len() > 1;
        settings.sim_units = Some(modelled);
        let judged = |subject: &&Subject| {
            subject.kind == EngineKind::Sim || !(several || subject.kind == EngineKind::Tract)
        };
        for subject in subjects().iter().filter(judged) {
            for scenario in Scenario::ALL {
                let (allocations, queries) = allocations_of(subject, scenario, &settings);
                let expected = if scenario == Scenario::Offline { 1 } else { 500 };
                assert_eq!(
                    (allocations, queries),
                    (0, expected),
                    "{subject} {scenario} on {units}"
                );
            }
        }
    }
}

#[test]
fn sequences_of_several_lengths_allocate_nothing() {
    let settings = EngineSettings {
        warmup_duration: Some(Duration::from_millis(1)),
        sequence_lengths: "16,40,64".parse().ok(),
        // The issuing thread computes, so that its allocations are all there are.
        dispatch: Some(Dispatch::Direct),
        ..EngineSettings::default()
    };
    let judged = |subject: &&Subject| subject.has_lengths() && subject.has_types() && subject.units() == 1;
    for subject in subjects().iter().filter(judged) {
        for scenario in Scenario::ALL {
            let (allocations, queries) = allocations_of(subject, scenario, &settings);
            let expected = if scenario == Scenario::Offline { 1 } else { 500 };
            assert_eq!((allocations, queries), (0, expected), "{subject} {scenario}");
        }
    }
}
