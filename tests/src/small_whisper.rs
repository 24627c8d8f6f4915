//! A small Whisper of random weights, and the benchmark that describes it.

use crate::mlperf_benchmark::replaced;

/// Resizes the benchmark's file to a number of clips and to these networks, whose timestamps are suppressed, because they have digits.
///
/// # Panics
/// Panics when the file has other sizes.
#[must_use]
pub fn resized(text: String, clips: usize) -> String {
    replaced(
        text,
        &[
            ("_samples = 1633", &format!("_samples = {clips}")),
            ("utterances = 5567", &format!("utterances = {clips}")),
            ("layers = 32", "layers = 2"),
            ("width = 1280", "width = 32"),
            ("vocabulary = 51866", "vocabulary = 66"),
            (
                "prompt = [50258, 50259, 50360, 50364]",
                "prompt = [60, 61, 62, 63]",
            ),
            ("end = 50257", "end = 59"),
            ("most_tokens = 200", "most_tokens = 24\nsuppressed = [64, 65]"),
        ],
    )
}
