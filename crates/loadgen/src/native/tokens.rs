//! Token latencies: the time to the first token of each sample, and the time per later token.

use std::sync::Mutex;

use super::faults::{Faults, lock};
use crate::results::{Latencies, TokenLatencies};

/// Marks a missing value. LoadGen uses the same number, and computes with it when a first token is missing.
const MISSING: i64 = i64::MIN;

/// Bytes per sample: its first token's latency and bytes, and its time per token.
pub(super) const PER_SAMPLE: u64 = (2 * size_of::<i64>() + size_of::<Option<Box<[u8]>>>()) as u64;

/// Records tokens of one series of queries. Benchmarks with tokens have long responses, so a lock is cheap enough.
#[derive(Debug)]
pub(super) struct TokenRecorder {
    needs_first: bool,
    state: Mutex<TokenState>,
}

#[derive(Debug, Default)]
struct TokenState {
    first: Vec<i64>,
    per_token: Vec<i64>,
    count: i64,
    first_bytes: Vec<Option<Box<[u8]>>>,
}

impl TokenRecorder {
    /// Creates a recorder. `needs_first` is false for Offline, which has no first tokens.
    pub(super) fn new(needs_first: bool) -> Self {
        Self {
            needs_first,
            state: Mutex::default(),
        }
    }

    /// Records a first token of the sample at `position`. Its bytes are kept only if they will be logged.
    pub(super) fn first(&self, position: usize, latency_ns: i64, bytes: Option<&[u8]>, faults: &Faults) {
        let mut state = lock(&self.state);
        if state.per_token.get(position).is_some_and(|&ns| ns != MISSING) {
            faults.note(|| "Attempted to record token latency after sample was completed".to_owned());
            return;
        }
        let slot = at(&mut state.first, position, MISSING);
        if *slot != MISSING {
            faults.note(|| "Attempted to complete a sample twice.".to_owned());
            return;
        }
        *slot = latency_ns;
        if let Some(bytes) = bytes {
            *at(&mut state.first_bytes, position, None) = Some(bytes.into());
        }
    }

    /// Records the response of the sample at `position`. Returns its first token's bytes, if they were kept.
    pub(super) fn complete(
        &self,
        position: usize,
        latency_ns: i64,
        count: i64,
        faults: &Faults,
    ) -> Box<[u8]> {
        let mut state = lock(&self.state);
        let first_ns = state.first.get(position).copied().unwrap_or(MISSING);
        if self.needs_first && first_ns == MISSING {
            faults.note(|| "Attempted to record a sample latency before it's first token latency".to_owned());
        }
        let count = checked_count(count, faults);
        state.count = state.count.wrapping_add(count);
        let per_token = latency_ns.wrapping_sub(first_ns).wrapping_div(count - 1);
        *at(&mut state.per_token, position, MISSING) = per_token;
        state
            .first_bytes
            .get_mut(position)
            .and_then(Option::take)
            .unwrap_or_default()
    }

    /// Returns the recorded latencies; empty without a recorder.
    pub(super) fn finish(recorder: Option<&Self>) -> TokenLatencies {
        let Some(recorder) = recorder else {
            return TokenLatencies::default();
        };
        let state = std::mem::take(&mut *lock(&recorder.state));
        TokenLatencies {
            first: Latencies::from_values(state.first),
            per_token: Latencies::from_values(state.per_token),
            count: state.count.cast_unsigned(),
        }
    }
}

fn at<T: Clone>(values: &mut Vec<T>, position: usize, missing: T) -> &mut T {
    if values.len() <= position {
        values.resize(position + 1, missing);
    }
    &mut values[position]
}

fn checked_count(count: i64, faults: &Faults) -> i64 {
    match count {
        2.. => count,
        1 => {
            faults.note(|| "Number of tokens need to be greater than 1".to_owned());
            0
        }
        0 => {
            faults
                .note(|| "n_tokens argument missing or attempted to record 0 as number of tokens".to_owned());
            0
        }
        _ => {
            faults.note(|| "Attempted to record a negative number of tokens".to_owned());
            0
        }
    }
}
