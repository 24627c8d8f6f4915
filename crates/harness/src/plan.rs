//! How a scenario is served: batch sizes, streams and threads. The plan follows from the scenario, LoadGen's settings
//! and the user's settings. This module does not load or start anything.

use std::time::Duration;

use regatta_engines::EnginePlan;
use regatta_loadgen::memory;
use regatta_loadgen_conf::TestSettings;
use regatta_types::Scenario;
use regatta_types::engine_settings::{Dispatch, EngineSettings};

use super::queue::Gather;

/// Why settings cannot be used together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServingError {
    /// `dispatch=direct` with several streams.
    #[error("dispatch=direct computes on one thread, but inference_streams is {0}")]
    DirectStreams(usize),
    /// The batches do not fit into memory.
    #[error(
        "{setting} is {samples}, but batches of this size take {needed_mib} MiB of memory and {free_mib} MiB are free; hint: lower \
         {setting}"
    )]
    BatchMemory {
        /// The setting that determines the batch size.
        setting: &'static str,
        /// Samples in a batch.
        samples: usize,
        /// Memory that the batches need, in MiB.
        needed_mib: u64,
        /// Free memory in MiB.
        free_mib: u64,
    },
}

/// The samples that a run computes.
#[derive(Debug, Clone, Copy)]
pub struct ServedSamples {
    /// Bytes of a sample, or of the largest one.
    pub bytes: usize,
    /// Whether the engine sees each sample in sliding windows. It then takes one sample at a time, in batches of windows.
    pub has_windows: bool,
    /// Whether an Offline batch has one sample by default, because each answer is a long computation, such as an image.
    pub is_slow: bool,
}

/// Bytes per sample of a batch besides its data: its position, answer and response.
const PER_SAMPLE: u64 = 256;
/// Copies of a batch's data: loaded, blank for the warm-up, and in the engine's input.
const COPIES: u64 = 3;

/// Rejects batches that do not fit into memory, because a failed allocation would abort the process.
fn check_memory(
    setting: &'static str,
    samples: usize,
    streams: usize,
    sample_bytes: usize,
) -> Result<(), ServingError> {
    let per_sample = PER_SAMPLE.saturating_add(COPIES.saturating_mul(sample_bytes as u64));
    let needed = (samples as u64)
        .saturating_mul(streams as u64)
        .saturating_mul(per_sample);
    match memory::available() {
        Some(free) if needed > free => Err(ServingError::BatchMemory {
            setting,
            samples,
            needed_mib: needed >> 20,
            free_mib: free >> 20,
        }),
        _ => Ok(()),
    }
}

/// Default batch size for Offline: large enough to amortise a call, small enough for the caches of a small board.
const OFFLINE_BATCH: usize = 16;

/// How a run is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServingPlan {
    /// Batch sizes that the engine must be fast at, the largest last. With sliding windows, numbers of windows.
    pub batch_sizes: Vec<usize>,
    /// Number of engines that compute at the same time.
    pub streams: usize,
    /// The thread that computes.
    pub dispatch: Dispatch,
    /// When a worker takes a partial batch.
    pub gather: Gather,
    /// Number of samples from which the queue blocks the issuing thread.
    pub queue_capacity: Option<usize>,
}

impl ServingPlan {
    /// Plans the serving of samples by an engine.
    ///
    /// # Errors
    /// [`ServingError`] when the settings contradict each other.
    pub fn new(
        settings: &EngineSettings,
        engine: &EnginePlan,
        test: &TestSettings,
        samples: ServedSamples,
    ) -> Result<Self, ServingError> {
        let (scenario, streams) = (test.scenario, engine.streams);
        let at_once = engine.answers_at_once || scenario == Scenario::SingleStream;
        let alone = scenario == Scenario::MultiStream && streams == 1;
        let dispatch = settings
            .dispatch
            .unwrap_or(if (at_once && streams == 1) || alone {
                Dispatch::Direct
            } else {
                Dispatch::Worker
            });
        if dispatch == Dispatch::Direct && streams > 1 {
            return Err(ServingError::DirectStreams(streams));
        }
        let samples_per_query = usize::try_from(test.multi_stream_samples_per_query)
            .unwrap_or(usize::MAX)
            .max(1);
        let shared = engine.units > 1;
        let requested_batch = engine.requested_batch;
        let windows = samples.has_windows.then_some(engine.window_batch);
        let batch = match (scenario, requested_batch) {
            (Scenario::SingleStream, _) => 1,
            _ if windows.is_some() => 1,
            // The split of a query between units is measured, so each unit must accept the whole query.
            (Scenario::MultiStream, None) if shared => samples_per_query,
            (Scenario::MultiStream, requested) => requested
                .unwrap_or(samples_per_query.div_ceil(streams))
                .min(samples_per_query),
            (Scenario::Server, requested) => requested.unwrap_or(1),
            (Scenario::Offline, requested) => {
                let usual = if samples.is_slow { 1 } else { OFFLINE_BATCH };
                requested.or(engine.offline_batch).unwrap_or(usual)
            }
        };
        let setting = match (scenario, requested_batch) {
            (Scenario::MultiStream, Some(requested_batch)) if requested_batch > batch => "samples_per_query",
            (Scenario::MultiStream, None) => "samples_per_query",
            _ => "batch_size",
        };
        check_memory(setting, batch, streams, samples.bytes)?;
        Ok(Self {
            batch_sizes: match windows {
                Some(windows) => vec![windows],
                None => quick_sizes(scenario, batch, samples_per_query, shared),
            },
            streams,
            dispatch,
            gather: match scenario {
                Scenario::Offline => Gather::UntilFull,
                Scenario::Server => {
                    Gather::Within(Duration::from_micros(settings.deque_timeout_usec.unwrap_or(0)))
                }
                Scenario::SingleStream | Scenario::MultiStream => Gather::Within(Duration::ZERO),
            },
            // Two batches per stream: one in progress and one ready.
            queue_capacity: (scenario == Scenario::Offline).then_some(2 * batch * streams),
        })
    }
}

/// Largest batch for which every smaller size is prepared. Each graph takes memory on the device.
const EVERY_SIZE_UP_TO: usize = 16;

/// Returns the batch sizes that occur often. In MultiStream, these are the rest of a query, or any part if units share
/// it. In Server, these are powers of two and the largest size.
fn quick_sizes(scenario: Scenario, batch: usize, samples_per_query: usize, shared: bool) -> Vec<usize> {
    let mut sizes: Vec<usize> = match scenario {
        Scenario::MultiStream if shared && batch <= EVERY_SIZE_UP_TO => (1..=batch).collect(),
        Scenario::MultiStream => vec![samples_per_query % batch, batch],
        Scenario::Server => {
            let doubled = std::iter::successors(Some(1_usize), |size| size.checked_mul(2));
            doubled.take_while(|&size| size < batch).chain([batch]).collect()
        }
        Scenario::SingleStream | Scenario::Offline => vec![batch],
    };
    sizes.retain(|&size| size > 0);
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_portion_of_a_shared_query_is_a_usual_size() {
        let sizes = |batch, samples, shared| quick_sizes(Scenario::MultiStream, batch, samples, shared);
        assert_eq!(sizes(8, 8, true), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(sizes(3, 8, true), [1, 2, 3]);
        assert_eq!(sizes(8, 8, false), [8]);
        assert_eq!(sizes(3, 8, false), [2, 3]);
        assert_eq!(sizes(64, 64, true), [64]);
    }
}
