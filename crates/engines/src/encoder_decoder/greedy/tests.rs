//! Tests of the loop on fake networks, which check what they get: tokens, positions and caches, for streams that end at different times. A batch
//! allocates nothing, not even the first one.

use regatta_test_support::counting_allocator::allocations;
use regatta_types::benchmark::{Benchmark, Response};

use super::*;
use crate::{
    Input,
    host_network::HostNetwork,
    network::{FLOAT, KeptUpdate, NetworkLayout, read_floats},
    network_loader::{float_input, integer, kept},
};

const STREAMS: usize = 3;
const STEPS: usize = 4;
const VOCABULARY: usize = 5;
/// The token that ends a transcript.
const END: usize = 4;
const PROMPT: [usize; 2] = [3, 0];
const MAX_TOKENS: usize = 6;

/// An encoder, whose keys and values are all ones.
struct FakeEncoder;

/// A decoder that generates token 1, then 2, then 1. Stream `n` ends after `2 n` of them.
struct FakeDecoder;

impl Engine for FakeEncoder {
    fn max_batch(&self) -> usize {
        STREAMS
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        for _ in batch.samples {
            put(answers.add(2 * STEPS * FLOAT), std::iter::repeat(1.0));
        }
        Ok(())
    }
}

impl Engine for FakeDecoder {
    fn max_batch(&self) -> usize {
        STREAMS
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        let Input::Scattered { arena, slots } = batch.input else {
            return Err(EngineError::BatchSize { size: 0, max: 0 });
        };
        let row = arena.len() / STREAMS;
        for &slot in slots {
            let (numbers, keys) = arena[slot * row..][..row].split_at(2 * size_of::<i32>());
            let (cache, cross) = keys.split_at(keys.len() - 2 * STEPS * FLOAT);
            let [token, position] =
                [0, 4].map(|at| i32::from_le_bytes(*numbers[at..].first_chunk().unwrap()) as usize);
            let generated = position.checked_sub(PROMPT.len());
            let expected = generated.map_or_else(|| PROMPT[position], |number| 1 + number % 2);
            assert_eq!(token, expected, "stream {slot}, position {position}");
            assert!(read_floats(cross).all(|value| value == 1.0));
            // Keys are 10 plus their position, and values 20 plus it.
            for (base, cached) in [10.0, 20.0].into_iter().zip(cache.chunks(cache.len() / 2)) {
                for (at, value) in read_floats(cached).enumerate() {
                    let expected = if at < position { base + at as f32 } else { 0.0 };
                    assert_eq!(
                        value.to_bits(),
                        expected.to_bits(),
                        "stream {slot}, position {position}"
                    );
                }
            }
            let next = (position + 1).checked_sub(PROMPT.len());
            let next = next.map_or(0, |number| if number == 2 * slot { END } else { 1 + number % 2 });
            let scores = (0..VOCABULARY).map(|token| if token == next { 1.0 } else { 0.0 });
            let keys = [10.0, 20.0].map(|base| base + position as f32);
            put(answers.add((VOCABULARY + 2) * FLOAT), scores.chain(keys));
        }
        Ok(())
    }
}

/// Returns a network whose results have `result` floats.
fn network(engine: Box<dyn Engine>, layout: &NetworkLayout<'_>, result: usize) -> HostNetwork {
    let mut network = HostNetwork::new(engine, layout, STREAMS);
    network.reserve(result * FLOAT);
    network
}

#[test]
fn streams_end_at_different_times_without_allocations() {
    let text = include_str!("../../../../../configs/benchmarks/whisper.toml");
    let mut benchmark = Benchmark::from_toml(text).unwrap();
    let networks = EncoderDecoder {
        layers: 1,
        width: 1,
        vocabulary: VOCABULARY,
        prompt: PROMPT.to_vec(),
        end: END,
        most_tokens: MAX_TOKENS,
        ..benchmark.model.encoder_decoder.take().unwrap()
    };
    let values = STEPS * networks.frames_per_step * networks.features.hop;
    benchmark.model.input_shape = vec![values];
    assert_eq!(benchmark.model.response, Response::Transcript);
    let frames = STEPS * networks.frames_per_step;
    let of_encoder = NetworkLayout {
        written: &[float_input("features", vec![networks.features.bands, frames])],
        kept: &[],
        is_for_network: true,
        is_single_precision: false,
    };
    let encoder = network(Box::new(FakeEncoder), &of_encoder, 2 * STEPS);
    let shape = |positions| vec![1, 2, positions, 1];
    let of_decoder = NetworkLayout {
        written: &[integer("token"), integer("position")],
        kept: &[
            kept("cache", shape(networks.positions()), KeptUpdate::Row),
            kept("cross", shape(STEPS), KeptUpdate::Result),
        ],
        is_for_network: false,
        is_single_precision: false,
    };
    let decoder = network(Box::new(FakeDecoder), &of_decoder, VOCABULARY);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tokens.txt");
    // The texts are `?`, ` a`, ` B` and none.
    std::fs::write(&path, "3f\n2061\n2042\n\n\n").unwrap();
    let texts = Arc::new(TokenTexts::read(&path, VOCABULARY).unwrap());
    let mut engine = EncoderDecoderEngine::new(&benchmark.model, &networks, (encoder, decoder), texts);
    assert_eq!(engine.max_batch(), STREAMS);
    let mut answers = Answers::default();
    answers.reserve(STREAMS, engine.answer_bytes());
    let samples = [0; STREAMS];
    let arena = vec![0; STREAMS * benchmark.model.sample_bytes().unwrap()];
    for _ in 0..2 {
        answers.clear();
        let before = allocations();
        let batch = Batch {
            samples: &samples,
            input: Input::Contiguous(&arena),
        };
        engine.infer(&batch, &mut answers).unwrap();
        assert_eq!(allocations() - before, 0);
        // Space is symbol 0, a is 1 and b is 2.
        let found: Vec<&[u8]> = answers.iter().collect();
        let expected: [&[u8]; STREAMS] = [&[], &[1, 0, 2], &[1, 0, 2, 0, 1, 0, 2]];
        assert_eq!(found, expected);
        let counts: Vec<i64> = answers.token_counts().collect();
        assert_eq!(counts, [1, 3, 5], "with the token that ends a transcript");
    }
}
