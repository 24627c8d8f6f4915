//! What happens between a query's issue and its answer: LoadGen, harness and engine on one thread, without one allocation; and the
//! issuing thread alone, where workers compute.

use std::{cell::Cell, time::Duration};

use regatta_loadgen::{
    NativeLoadGen,
    load_gen::{LoadGen as _, NoObserver},
    request::{ConfText, RunRequest},
    sut::{Completer, Query, SutError, SystemUnderTest},
};
use regatta_rules::{Mode, Scenario, TestSettings, documents::EngineKind};

use super::*;
use crate::{
    counting_allocator::allocations,
    engines::{
        conformance::subjects::{Subject, subjects},
        sim::SimModel,
    },
    fixture::Fixture,
};

/// Queries after which every buffer has its size.
const WARM: u64 = 3;

thread_local! {
    /// The thread's allocations when it was warm and at its last query, and how many queries there were.
    static SEEN: Cell<(u64, u64, u64)> = const { Cell::new((0, 0, 0)) };
}

/// The harness's SUT, with a look at the allocator's count before every query.
struct Watched<'a>(&'a dyn SystemUnderTest);

impl SystemUnderTest for Watched<'_> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        let now = allocations();
        let (warm, _, queries) = SEEN.get();
        SEEN.set((if queries == WARM { now } else { warm }, now, queries + 1));
        self.0.issue_query(query, completer)
    }

    fn flush_queries(&self) -> Result<(), SutError> {
        self.0.flush_queries()
    }
}

fn allocations_of(subject: &Subject, scenario: Scenario, settings: &HarnessSettings) -> (u64, u64) {
    let (fixture, logs) = (Fixture::new(), tempfile::tempdir().unwrap());
    let batch = if scenario == Scenario::MultiStream { 8 } else { 1 };
    let wish = subject.wish(&fixture, "fp32", batch, 1);
    let mut request = RunRequest::new("pixels", scenario, Mode::PerformanceOnly, logs.path());
    let conf = "*.*.min_query_count = 500\n*.*.max_query_count = 500\n*.*.min_duration = 0\n\
                *.Server.target_qps = 5000\n";
    request.user_conf = Some(ConfText::new("user.conf", conf));
    let test = TestSettings::new(scenario, Mode::PerformanceOnly);
    let harness = Harness::with_wish(
        &fixture.benchmark(),
        subject.kind,
        settings,
        &test,
        Some(fixture.scratch()),
        &wish,
    )
    .unwrap();
    SEEN.set((0, 0, 0));
    NativeLoadGen
        .run(&Watched(harness.sut()), harness.library(), &request, &NoObserver)
        .unwrap();
    let (warm, last, queries) = SEEN.get();
    (last - warm, queries)
}

#[test]
fn the_measuring_path_allocates_nothing() {
    let mut settings = HarnessSettings::default();
    settings.sim.board.units = SimModel::parse_units("gpu=20+0").unwrap();
    settings.warmup_duration = Some(Duration::from_millis(20));
    for subject in subjects()
        .iter()
        .filter(|subject| subject.kind != EngineKind::Tract)
    {
        for scenario in [Scenario::SingleStream, Scenario::MultiStream, Scenario::Server] {
            let (allocations, queries) = allocations_of(subject, scenario, &settings);
            assert_eq!((allocations, queries), (0, 500), "{subject} {scenario}");
        }
    }
}
