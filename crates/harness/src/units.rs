//! Shares a query's samples between a chip's units. This module chooses the policy from measured profiles, returns the
//! profiles as a board model, and sets up the log of units.

use std::{sync::Arc, time::Duration};

use regatta_loadgen_conf::TestSettings;
use regatta_types::engine_settings::Sharing;
use regatta_types::{Scenario, response_units::NO_UNIT};
use regatta_unit_sharing::{
    board_model::BoardModel,
    measured_board::MeasuredUnit,
    policy::{FixedPortions, Policy},
    unit_profiler::UnitProfiles,
};

use super::{fault::HarnessError, lane::Lane, request::HarnessRequest, unit_log::UnitLog, warm_up};

/// How units share a query's samples.
#[derive(Default)]
pub(crate) struct Shared {
    /// The policy that assigns samples to units. `None` lets any free unit take them: with one unit, in Server, or if
    /// the user sets it.
    pub policy: Option<Box<dyn Policy + Send>>,
    /// The units as a board model, if requested.
    pub board: Option<BoardModel>,
}

/// Measures the units' service times if the policy needs them or they are requested, and chooses the policy. With sequences of several lengths
/// (`has_lengths`), times do not hold for all batches of an Offline query, and any free unit takes the next one.
///
/// # Errors
/// [`HarnessError`] when an engine fails during the measurement.
pub(crate) fn share(
    lanes: &mut [Lane],
    request: &HarnessRequest<'_>,
    length: Duration,
    has_lengths: bool,
) -> Result<Shared, HarnessError> {
    let (test, units) = (request.test, warm_up::units(lanes));
    let at_once = matches!(test.scenario, Scenario::Offline | Scenario::MultiStream);
    let is_even = !(has_lengths && test.scenario == Scenario::Offline);
    let by_times = units > 1 && at_once && is_even && request.settings.sharing != Some(Sharing::FirstFree);
    if !by_times && !request.learn {
        return Ok(Shared::default());
    }
    let pipelined = matches!(test.scenario, Scenario::Offline | Scenario::Server);
    let profiles = warm_up::learn_times(lanes, pipelined, length)?;
    let policy: Option<Box<dyn Policy + Send>> = match test.scenario {
        _ if !by_times => None,
        Scenario::MultiStream => Some(Box::new(cut(lanes, &profiles, test))),
        _ => Some(Box::new(profiles.offline())),
    };
    let board = request.learn.then(|| board(lanes, &profiles, pipelined));
    Ok(Shared { policy, board })
}

/// Returns the fixed split of all MultiStream queries.
fn cut(lanes: &[Lane], profiles: &UnitProfiles, test: &TestSettings) -> FixedPortions {
    let samples = usize::try_from(test.multi_stream_samples_per_query).unwrap_or(usize::MAX);
    let split = profiles.split(samples.max(1));
    let mut most = vec![1; profiles.alone.len()];
    for lane in lanes {
        most[lane.unit()] = lane.max_batch();
    }
    tracing::info!(portions = ?split.portions, expected_ms = split.seconds * 1e3, "a query is cut so");
    FixedPortions::new(split.portions, most)
}

/// Returns the measured profiles as a board model without a name. The caller knows the engine.
fn board(lanes: &[Lane], profiles: &UnitProfiles, pipelined: bool) -> BoardModel {
    let measured = (0..profiles.alone.len()).map(|unit| {
        let mut of_unit = lanes.iter().filter(|lane| lane.unit() == unit);
        let name = of_unit
            .next()
            .map_or_else(|| format!("unit{unit}"), Lane::unit_name);
        let streams = if pipelined { 1 + of_unit.count() } else { 1 };
        MeasuredUnit { name, streams }
    });
    profiles.board(String::new(), measured.collect())
}

/// Returns a log of the unit that computed each response, and sets it in all lanes. `None` if the lanes use one unit.
///
/// `test` and the dataset's `total` samples give the expected number of responses. The log has space for twice as many.
pub(crate) fn log_units(lanes: &mut [Lane], test: &TestSettings, total: usize) -> Option<Arc<UnitLog>> {
    let units = warm_up::units(lanes);
    if units < 2 || units > usize::from(NO_UNIT) {
        return None;
    }
    let mut names = vec!["unused".to_owned(); units];
    for lane in &*lanes {
        names[lane.unit()] = lane.unit_name();
    }
    let responses = expected_responses(test).saturating_add(total).saturating_mul(2);
    let log = Arc::new(UnitLog::new(names, responses));
    lanes.iter_mut().for_each(|lane| lane.note_in(&log));
    Some(log)
}

/// Returns the expected number of responses of a performance run at the configured rate.
fn expected_responses(test: &TestSettings) -> usize {
    let per_query = match test.scenario {
        Scenario::MultiStream => test.multi_stream_samples_per_query,
        Scenario::SingleStream | Scenario::Server | Scenario::Offline => 1,
    };
    let queries_per_second = match test.scenario {
        Scenario::SingleStream => 1e9 / test.single_stream_expected_latency_ns,
        Scenario::MultiStream => 1e9 / test.multi_stream_expected_latency_ns,
        Scenario::Server => test.server_target_qps,
        Scenario::Offline => test.offline_expected_qps,
    };
    let by_time = queries_per_second * test.min_duration_ms as f64 / 1e3;
    // The cast turns NaN into 0 and saturates large values.
    let queries = (by_time as usize).max(usize::try_from(test.min_query_count).unwrap_or(usize::MAX));
    queries.saturating_mul(usize::try_from(per_query).unwrap_or(usize::MAX))
}
