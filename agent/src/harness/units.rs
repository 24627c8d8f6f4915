//! How the samples of a query are shared when a chip has several units: which policy, from what was measured; and what was measured
//! as a board.

use std::time::Duration;

use regatta_rules::{Scenario, TestSettings, engine_settings::Sharing};
use regatta_schedule::{
    board_model::BoardModel,
    measured_board::MeasuredUnit,
    policy::{FixedPortions, Policy},
    unit_profiler::UnitProfiles,
};

use super::{fault::HarnessError, lane::Lane, settings::HarnessSettings, warm_up};

/// How a query's samples are shared.
#[derive(Default)]
pub(crate) struct Shared {
    /// Who takes how many; `None` where there is one unit, or whoever is free takes what there is: in Server, where queries come
    /// one by one, and where the user says so.
    pub(crate) policy: Option<Box<dyn Policy + Send>>,
    /// The units as a board, where that was asked for.
    pub(crate) board: Option<BoardModel>,
}

/// Learns the units' times where the policy needs them or they were asked for, and finds the policy.
///
/// # Errors
/// [`HarnessError`] when an engine fails while its service times are measured.
pub(crate) fn share(
    lanes: &mut [Lane],
    settings: &HarnessSettings,
    test: &TestSettings,
    length: Duration,
) -> Result<Shared, HarnessError> {
    let units = warm_up::units(lanes);
    let at_once = matches!(test.scenario, Scenario::Offline | Scenario::MultiStream);
    let by_times = units > 1 && at_once && settings.engine.sharing != Some(Sharing::FirstFree);
    if !by_times && !settings.learn {
        return Ok(Shared::default());
    }
    let pipelined = matches!(test.scenario, Scenario::Offline | Scenario::Server);
    let profiles = warm_up::learn_times(lanes, pipelined, length)?;
    let policy: Option<Box<dyn Policy + Send>> = match test.scenario {
        _ if !by_times => None,
        Scenario::MultiStream => Some(Box::new(cut(lanes, &profiles, test))),
        _ => Some(Box::new(profiles.offline())),
    };
    let board = settings.learn.then(|| board(lanes, &profiles, pipelined));
    Ok(Shared { policy, board })
}

/// One cut for all queries of MultiStream.
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

/// The measured profiles as a board model. Without a name: the caller knows what computes.
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
