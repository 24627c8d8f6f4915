//! How the samples of a query are shared when a chip has several units: which policy, from what was learnt.

use std::time::Duration;

use regatta_rules::{Scenario, TestSettings};
use regatta_schedule::policy::{ByPortions, Policy};

use super::{
    fault::HarnessError,
    lane::Lane,
    settings::{HarnessSettings, Sharing},
    warm_up,
};

/// The policy for a run, or `None` where there is one unit, or whoever is free takes what there is: in Server, where
/// queries come one by one, and where the user says so.
///
/// # Errors
/// [`HarnessError`] when an engine fails while its service times are learnt.
pub(crate) fn share(
    lanes: &mut [Lane],
    settings: &HarnessSettings,
    test: &TestSettings,
    length: Duration,
) -> Result<Option<Box<dyn Policy + Send>>, HarnessError> {
    let units = warm_up::units(lanes);
    if units < 2 || settings.sharing == Some(Sharing::FirstFree) {
        return Ok(None);
    }
    match test.scenario {
        Scenario::Offline => {
            let learnt = warm_up::learn_times(lanes, true, length)?;
            Ok(Some(Box::new(learnt.offline())))
        }
        Scenario::MultiStream => {
            let learnt = warm_up::learn_times(lanes, false, length)?;
            let samples = usize::try_from(test.multi_stream_samples_per_query).unwrap_or(usize::MAX);
            let split = learnt.split(samples.max(1));
            let mut most = vec![1; units];
            for lane in lanes {
                most[lane.unit()] = lane.max_batch();
            }
            tracing::info!(portions = ?split.portions, expected_ms = split.seconds * 1e3, "a query is cut so");
            Ok(Some(Box::new(ByPortions::new(split.portions, most))))
        }
        Scenario::SingleStream | Scenario::Server => Ok(None),
    }
}
