//! The limit of a campaign's run whose plan has none: a multiple of the time that such runs take, so that a run that never ends costs a
//! bounded time, and a slow one is not ended.

use super::estimate::{is_alike, loadgen_seconds};
use regatta_lab_runs::least_seconds;
use regatta_lab_store::{RunDraft, RunRow};

/// The multiple of the longest past run, or of its shortest duration, that a run may take.
const TIMES: u64 = 10;
/// The least limit of a run with past ones: preparation and delivery take time, too.
const MIN_WITH_PAST_S: u64 = 3_600;
/// The least limit of a run whose only known time is its shortest duration.
const MIN_WITHOUT_S: u64 = 86_400;

/// Returns the limit in seconds. `past` are recorded runs of the same device, benchmark and engine.
pub(super) fn default_limit_s(draft: &RunDraft, past: &[RunRow]) -> u64 {
    let alike = past.iter().filter(|row| is_alike(row, draft));
    let longest = alike.filter_map(loadgen_seconds).fold(0.0, f64::max);
    if longest > 0.0 {
        (longest.ceil() as u64).saturating_mul(TIMES).max(MIN_WITH_PAST_S)
    } else {
        let least = least_seconds(&draft.spec).unwrap_or(0);
        least.saturating_mul(TIMES).max(MIN_WITHOUT_S)
    }
}
