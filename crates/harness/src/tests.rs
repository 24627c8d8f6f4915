//! Tests of the harness through LoadGen's interface, with real engines, real files, and a test sink.

mod sequences;

use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use proptest::prelude::*;
use regatta_engines::EngineError;
use regatta_loadgen::sut::{
    Completer, CompletionSink, Query, QuerySample, QuerySampleResponse, QuerySequence, ResponseId, SutError,
};
use regatta_loadgen_conf::TestSettings;
use regatta_test_support::fixture::{self, Fixture};
use regatta_types::{Mode, Scenario, documents::EngineKind, engine_settings::EngineSettings};

use super::{arena::BatchMemory, *};

/// A sink that records what the SUT reports and lets the test wait for it.
#[derive(Default)]
struct Sink {
    state: Mutex<SinkState>,
    changed: Condvar,
}

#[derive(Default)]
struct SinkState {
    answers: BTreeMap<u64, Vec<u8>>,
    batches: Vec<usize>,
    failure: Option<String>,
}

impl CompletionSink for Sink {
    fn complete(&self, responses: &[QuerySampleResponse<'_>]) {
        let mut state = self.state.lock().unwrap();
        state.batches.push(responses.len());
        for response in responses {
            let before = state.answers.insert(response.id.0, response.data.to_vec());
            assert_eq!(before, None, "answered twice");
        }
        self.changed.notify_all();
    }

    fn first_token(&self, _: &[QuerySampleResponse<'_>]) {}

    fn fail(&self, error: SutError) {
        self.state.lock().unwrap().failure = Some(error.to_string());
        self.changed.notify_all();
    }
}

impl Sink {
    /// Waits until the given number of samples is answered, and returns them with the batch sizes.
    fn wait_for(&self, answers: usize) -> (BTreeMap<u64, Vec<u8>>, Vec<usize>) {
        let state = self.state.lock().unwrap();
        let patience = Duration::from_secs(30);
        let done = |state: &mut SinkState| state.answers.len() < answers && state.failure.is_none();
        let (mut state, timeout) = self.changed.wait_timeout_while(state, patience, done).unwrap();
        assert!(
            !timeout.timed_out(),
            "{} of {answers} answers came",
            state.answers.len()
        );
        assert_eq!(state.failure, None);
        (
            std::mem::take(&mut state.answers),
            std::mem::take(&mut state.batches),
        )
    }
}

/// An Offline query: sample `i` is `start + step * i` modulo the loaded set.
struct Lazy {
    samples: Vec<QuerySample>,
}

impl QuerySequence for Lazy {
    fn len(&self) -> usize {
        self.samples.len()
    }

    fn sample(&self, position: usize) -> QuerySample {
        self.samples[position]
    }
}

fn samples(indices: impl IntoIterator<Item = usize>) -> Vec<QuerySample> {
    let numbered = indices.into_iter().enumerate();
    numbered
        .map(|(id, index)| QuerySample {
            id: ResponseId(id as u64),
            index,
        })
        .collect()
}

fn set_up(
    fixture: &Fixture,
    kind: EngineKind,
    scenario: Scenario,
    values: &[(&str, &str)],
) -> Result<Harness, SetUpError> {
    let values = [("warmup_duration", "0")].iter().chain(values).copied();
    let settings = EngineSettings::parse(kind, values).unwrap();
    let request = HarnessRequest {
        benchmark: &fixture.benchmark(),
        engine: kind,
        settings: &settings,
        test: &TestSettings::new(scenario, Mode::PerformanceOnly),
        scratch: Some(fixture.scratch()),
        files: fixture.scratch(),
        learn: false,
    };
    Harness::set_up(&request, None)
}

fn expected(kind: EngineKind, samples: &[QuerySample]) -> BTreeMap<u64, Vec<u8>> {
    let answer = |index: usize| {
        if kind.computes() {
            fixture::class(index).to_le_bytes().to_vec()
        } else {
            (index as u64).to_le_bytes().to_vec()
        }
    };
    samples
        .iter()
        .map(|sample| (sample.id.0, answer(sample.index)))
        .collect()
}

/// Engine, scenario, settings, samples in the query.
type Case = (
    EngineKind,
    Scenario,
    &'static [(&'static str, &'static str)],
    usize,
);

const CASES: &[Case] = &[
    (EngineKind::Null, Scenario::SingleStream, &[], 1),
    (EngineKind::Null, Scenario::Offline, &[], 1000),
    (
        EngineKind::Null,
        Scenario::Offline,
        &[("dispatch", "worker"), ("inference_streams", "3")],
        1000,
    ),
    (
        EngineKind::Sim,
        Scenario::Server,
        &[("sim_units", "gpu=5+1,dla=9+2"), ("batch_size", "4")],
        50,
    ),
    (
        EngineKind::Sim,
        Scenario::MultiStream,
        &[("sim_units", "gpu=5+1,dla=9+2")],
        8,
    ),
    (
        EngineKind::Sim,
        Scenario::MultiStream,
        &[("sim_units", "gpu=90+50,dla=9+200"), ("sharing", "first-free")],
        8,
    ),
    (
        EngineKind::Sim,
        Scenario::Offline,
        &[("sim_board", "agx-orin.resnet50")],
        700,
    ),
    (
        EngineKind::Sim,
        Scenario::Offline,
        &[("sim_units", "gpu=5+1,dla=9+2,slow=900+900"), ("batch_size", "7")],
        1000,
    ),
    #[cfg(feature = "tract")]
    (EngineKind::Tract, Scenario::SingleStream, &[], 1),
    #[cfg(feature = "tract")]
    (EngineKind::Tract, Scenario::MultiStream, &[], 8),
    #[cfg(feature = "tract")]
    (
        EngineKind::Tract,
        Scenario::MultiStream,
        &[("batch_size", "3")],
        8,
    ),
    #[cfg(feature = "tract")]
    (
        EngineKind::Tract,
        Scenario::MultiStream,
        &[("inference_streams", "2")],
        8,
    ),
    #[cfg(feature = "tract")]
    (
        EngineKind::Tract,
        Scenario::Server,
        &[("batch_size", "6"), ("deque_timeout_usec", "200")],
        23,
    ),
    #[cfg(feature = "tract")]
    (
        EngineKind::Tract,
        Scenario::Offline,
        &[("batch_size", "7"), ("inference_streams", "2")],
        300,
    ),
];

#[test]
fn every_sample_of_every_query_is_answered_once_and_rightly_in_every_way_of_serving() {
    let fixture = Fixture::new();
    for &(kind, scenario, settings, length) in CASES {
        let harness = set_up(&fixture, kind, scenario, settings).unwrap();
        let set: Vec<usize> = (0..fixture::TOTAL).collect();
        harness.library().load_samples_to_ram(&set).unwrap();
        let sink = Arc::new(Sink::default());
        let completer = Completer::new(Arc::clone(&sink) as Arc<dyn CompletionSink>);
        let samples = samples((0..length).map(|i| (i * 7) % fixture::TOTAL));
        let whole = Lazy {
            samples: samples.clone(),
        };
        let queries: Vec<Query<'_>> = match scenario {
            Scenario::Server => samples.chunks(1).map(Query::Slice).collect(),
            Scenario::Offline => vec![Query::Lazy(&whole)],
            Scenario::SingleStream | Scenario::MultiStream => vec![Query::Slice(&samples)],
        };
        for query in queries {
            harness.sut().issue_query(query, &completer).unwrap();
        }
        harness.sut().flush_queries().unwrap();
        let (answers, _) = sink.wait_for(length);
        assert_eq!(
            answers,
            expected(kind, &samples),
            "{kind} {scenario} {settings:?}"
        );
        harness.library().unload_samples_from_ram(&set).unwrap();
        assert_eq!(harness.fault(), None);
    }
}

#[test]
fn offline_batches_are_full_but_for_the_last_and_the_next_series_is_served_as_well() {
    let fixture = Fixture::new();
    let settings = [("dispatch", "worker"), ("batch_size", "16")];
    let harness = set_up(&fixture, EngineKind::Null, Scenario::Offline, &settings).unwrap();
    for length in [100, 16, 5] {
        // A second series has its own sink, as after the accuracy part of a SubmissionRun.
        let sink = Arc::new(Sink::default());
        let completer = Completer::new(Arc::clone(&sink) as Arc<dyn CompletionSink>);
        let query = Lazy {
            samples: samples(0..length),
        };
        harness
            .sut()
            .issue_query(Query::Lazy(&query), &completer)
            .unwrap();
        harness.sut().flush_queries().unwrap();
        let (_, mut batches) = sink.wait_for(length);
        let last = batches.pop().unwrap();
        assert!(batches.iter().all(|&size| size == 16), "{batches:?}");
        assert_eq!(batches.len() * 16 + last, length);
    }
}

#[test]
fn a_multistream_query_is_one_contiguous_batch_also_where_it_runs_into_the_padding() {
    let fixture = Fixture::new();
    let library = Library::open(&fixture.benchmark(), fixture.scratch(), FirstFault::default()).unwrap();
    let set = [9, 4, 30, 2, 17, 5];
    let padded: Vec<usize> = set.iter().chain(&set[..3]).copied().collect();
    library.load_samples_to_ram(&padded).unwrap();
    let loaded = library.loaded().unwrap();
    for begin in 0..set.len() {
        let indices = &padded[begin..begin + 4];
        let query = samples(indices.to_vec());
        let expected: Vec<u8> = indices.iter().copied().flat_map(fixture::pixels).collect();
        let mut memory = BatchMemory::new(0);
        let batch = loaded.batch(&query, &mut memory).unwrap();
        assert_eq!(batch.samples, indices);
        match batch.input {
            regatta_engines::Input::Contiguous(bytes) => assert_eq!(bytes, expected, "from {begin}"),
            other => panic!("from {begin}: {other:?}"),
        }
    }
    let apart = samples([9, 30]);
    let mut memory = BatchMemory::new(2);
    let batch = loaded.batch(&apart, &mut memory).unwrap();
    assert_eq!(batch.samples, [9, 30]);
    assert!(matches!(
        batch.input,
        regatta_engines::Input::Scattered { slots: &[0, 2], .. }
    ));
    let (unloaded, mut memory) = (samples([4, 11]), BatchMemory::new(2));
    let missing = loaded.batch(&unloaded, &mut memory).unwrap_err();
    assert_eq!(missing.to_string(), "sample 11 was requested but is not loaded");
}

#[test]
fn warm_up_uses_the_addresses_of_loaded_samples() {
    let fixture = Fixture::new();
    let mut subjects = regatta_engines::subjects::subjects();
    subjects.retain(|subject| subject.kind == EngineKind::Tensorrt);
    let in_host_memory =
        |subject: &regatta_engines::subjects::Subject| subject.load(&fixture, &[4], 1).shared;
    let shared = subjects.iter().find_map(in_host_memory).unwrap();
    let mut library = Library::open(&fixture.benchmark(), fixture.scratch(), FirstFault::default()).unwrap();
    library.share(Arc::clone(&shared));
    library.lend_blank(4).unwrap();
    let loaded = library.loaded().unwrap();
    let regatta_engines::Input::Contiguous(blank) = loaded.blank(3) else {
        panic!("there is room for 4");
    };
    assert!(blank.iter().all(|&byte| byte == 0));
    assert!(shared.device_address(blank, blank.len()).is_some());
    assert!(matches!(loaded.blank(5), regatta_engines::Input::Absent));
}

#[cfg(feature = "tract")]
#[test]
fn a_sample_that_breaks_while_it_is_loaded_is_reported_and_remembered() {
    let fixture = Fixture::new();
    let harness = set_up(&fixture, EngineKind::Tract, Scenario::Offline, &[]).unwrap();
    let whole = fixture::npy("<f4", &fixture::SHAPE, &fixture::pixels(3));
    fixture.write_sample(3, &whole[..whole.len() - 1]);
    harness.library().load_samples_to_ram(&[1, 2, 3]).unwrap_err();
    let fault = harness
        .fault()
        .unwrap()
        .replace(&fixture.scratch().display().to_string(), "SCRATCH");
    insta::assert_snapshot!(fault);
}

#[cfg(feature = "tract")]
#[test]
fn samples_that_are_not_loaded_end_the_run_on_the_issuing_thread_and_on_a_worker() {
    let fixture = Fixture::new();
    for dispatch in ["direct", "worker"] {
        let harness = set_up(
            &fixture,
            EngineKind::Tract,
            Scenario::SingleStream,
            &[("dispatch", dispatch)],
        )
        .unwrap();
        let sink = Arc::new(Sink::default());
        let completer = Completer::new(Arc::clone(&sink) as Arc<dyn CompletionSink>);
        let query = samples([3]);
        let issued = harness.sut().issue_query(Query::Slice(&query), &completer);
        if dispatch == "direct" {
            issued.unwrap_err();
        } else {
            let failure = sink
                .changed
                .wait_while(sink.state.lock().unwrap(), |state| state.failure.is_none());
            assert_eq!(
                failure.unwrap().failure.as_deref(),
                Some("sample 3 was requested but is not loaded")
            );
            let next = harness
                .sut()
                .issue_query(Query::Slice(&query), &completer)
                .unwrap_err();
            assert!(next.to_string().starts_with("the run was abandoned"), "{next}");
        }
        assert_eq!(
            harness.fault(),
            Some("sample 3 was requested but is not loaded"),
            "{dispatch}"
        );
    }
}

/// An engine that fails in a configurable way.
struct Broken(Infer);

type Infer = fn(&mut regatta_engines::Answers) -> Result<(), EngineError>;

impl regatta_engines::Engine for Broken {
    fn max_batch(&self) -> usize {
        2
    }

    fn infer(
        &mut self,
        _: &regatta_engines::Batch<'_>,
        answers: &mut regatta_engines::Answers,
    ) -> Result<(), EngineError> {
        (self.0)(answers)
    }
}

#[test]
fn an_engine_that_panics_fails_or_answers_too_much_gives_an_error_and_no_answer() {
    let fixture = Fixture::new();
    let faults: [(Infer, &str); 3] = [
        (|_| panic!("out of tensors"), "the engine crashed: out of tensors"),
        (
            |_| Err(EngineError::BatchSize { size: 9, max: 2 }),
            "the engine failed",
        ),
        (
            |answers| {
                answers.push(&[1]);
                Ok(())
            },
            "the engine returned 1 responses for 2 samples",
        ),
    ];
    for (fault, expected) in faults {
        let library = Arc::new(Library::counted(&fixture.benchmark(), FirstFault::default()));
        let mut lane = Lane::new(Box::new(Broken(fault)), library);
        let sink = Arc::new(Sink::default());
        let completer = Completer::new(Arc::clone(&sink) as Arc<dyn CompletionSink>);
        let error = lane.serve(&samples([0, 1]), &completer).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(sink.state.lock().unwrap().answers.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// All issued samples come out once, in batches of at most the largest size, however they are split.
    #[test]
    fn a_queue_loses_and_doubles_nothing(
        lengths in prop::collection::vec(1..40_usize, 1..20),
        streams in 1..4_usize,
        batch in 1..9_usize,
        offline: bool,
    ) {
        let fixture = Fixture::new();
        let scenario = if offline { Scenario::Offline } else { Scenario::Server };
        let (streams, batch_size) = (streams.to_string(), batch.to_string());
        let settings =
            [("dispatch", "worker"), ("inference_streams", &*streams), ("batch_size", &*batch_size)];
        let harness = set_up(&fixture, EngineKind::Null, scenario, &settings).unwrap();
        let sink = Arc::new(Sink::default());
        let completer = Completer::new(Arc::clone(&sink) as Arc<dyn CompletionSink>);
        let all = samples((0..lengths.iter().sum()).map(|i| i % fixture::TOTAL));
        let mut rest = &all[..];
        for length in lengths {
            let (query, later) = rest.split_at(length);
            harness.sut().issue_query(Query::Slice(query), &completer).unwrap();
            rest = later;
        }
        harness.sut().flush_queries().unwrap();
        let (answers, batches) = sink.wait_for(all.len());
        prop_assert_eq!(answers, expected(EngineKind::Null, &all));
        prop_assert!(batches.iter().all(|&size| size <= batch));
    }
}
