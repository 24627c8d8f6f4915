//! Tests of sequences of several lengths through LoadGen's interface: order, batches and answers.

use super::*;

#[cfg(feature = "tract")]
const LENGTHS: [usize; 3] = [16, 40, 64];

#[cfg(feature = "tract")]
fn length(index: usize) -> usize {
    let tokens = fixture::sequence_tokens(index);
    LENGTHS.into_iter().find(|&length| length >= tokens).unwrap()
}

#[cfg(feature = "tract")]
#[test]
fn an_offline_query_is_sorted_and_its_batches_have_one_length() {
    let fixture = Fixture::new();
    fixture.take_sequences();
    for dispatch in ["direct", "worker"] {
        let settings = [
            ("sequence_lengths", "16,40"),
            ("batch_size", "4"),
            ("dispatch", dispatch),
        ];
        let harness = set_up(&fixture, EngineKind::Tract, Scenario::Offline, &settings).unwrap();
        let loaded: Vec<usize> = (0..24).collect();
        harness.library().load_samples_to_ram(&loaded).unwrap();
        let samples = samples((0..50).map(|number| number * 5 % 24));
        let sink = Arc::new(Sink::default());
        let completer = Completer::new(Arc::clone(&sink) as Arc<dyn CompletionSink>);
        let query = Lazy {
            samples: samples.clone(),
        };
        harness
            .sut()
            .issue_query(Query::Lazy(&query), &completer)
            .unwrap();
        harness.sut().flush_queries().unwrap();
        let (answers, batches) = sink.wait_for(samples.len());
        let expected: BTreeMap<u64, Vec<u8>> = samples
            .iter()
            .map(|sample| {
                let answer = fixture::sequence_answer(sample.index, length(sample.index));
                (sample.id.0, answer)
            })
            .collect();
        assert_eq!(answers, expected);
        let mut of_lengths = LENGTHS.map(|own| {
            let count = samples
                .iter()
                .filter(|sample| length(sample.index) == own)
                .count();
            (count.div_euclid(4), count % 4)
        });
        of_lengths.reverse();
        let expected: Vec<usize> = of_lengths
            .iter()
            .flat_map(|&(full, rest)| std::iter::repeat_n(4, full).chain((rest > 0).then_some(rest)))
            .collect();
        assert_eq!(batches, expected, "{dispatch}");
    }
}

#[test]
fn lengths_that_a_benchmark_cannot_have_are_refused() {
    let fixture = Fixture::new();
    let refused = |lengths: &str| {
        let settings = [("sequence_lengths", lengths)];
        let refused = set_up(&fixture, EngineKind::Tensorrt, Scenario::Offline, &settings);
        refused.err().unwrap().to_string()
    };
    assert_eq!(
        refused("16,64"),
        "sequence_lengths is 16,64, which pixels cannot have: its samples are not sequences: its file has no one-dimensional mask_input, or has a response other than `stacked`"
    );
    fixture.take_sequences();
    assert_eq!(
        refused("16,65"),
        "sequence_lengths is 16,65, which pixels cannot have: 65 is above the full length of 64"
    );
}
