//! Repeats INVALID runs whose rate was a guess. LoadGen plans the number of queries by the expected rate. The device's speed is known
//! after the first run, so the same request is sent again with the rates that the run has shown. It does not repeat a run because of noise.

use anyhow::Context as _;
use regatta_conf::{Conf, Number};
use regatta_fsutil::regular_file::{self, MAX_DOCUMENT};
use regatta_types::documents::{Document as _, RunSpec};

use super::{estimate::estimate, rate_advice::is_fixed_by_rate};
use regatta_lab_store::{RunDraft, RunRow, Store, workspace::Workspace};

/// The relative difference between the tried and the measured rate from which a run is repeated. Equal runs of a device differ by less.
const DIFFERENCE: f64 = 0.1;

/// Returns the drafts that repeat the INVALID runs among `rows`, each with the place of its run in `rows`. A run is repeated if another
/// rate can fix it, and the measured rate differs from the tried one by more than 10 %. A rate from the user is never changed. Audits
/// repeat a fixed spec and are not repeated here.
///
/// # Errors
/// Returns an error when the store fails or a run's spec cannot be read.
pub fn repetitions(
    rows: &[RunRow],
    workspace: &Workspace,
    store: &Store,
) -> anyhow::Result<Vec<(usize, RunDraft)>> {
    let mut found = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        let is_fixable = row.outcome.as_ref().is_some_and(|outcome| {
            outcome.judgement.valid == Some(false) && is_fixed_by_rate(&outcome.judgement.reasons)
        });
        if is_fixable && row.audit().is_none() && has_other_rate(row, workspace, store)? {
            found.push((place, row.draft.repeated()));
        }
    }
    Ok(found)
}

/// Returns whether the run would be sent with another rate now.
fn has_other_rate(row: &RunRow, workspace: &Workspace, store: &Store) -> anyhow::Result<bool> {
    let sent = regular_file::read(&workspace.run(row.id).spec(), MAX_DOCUMENT).context("the run's spec")?;
    let sent = RunSpec::from_json(&sent)?;
    let past = store.recorded_runs_like(&row.draft)?;
    let estimates = estimate(&row.draft.spec, &past);
    let next = row.draft.user_conf(&estimates);
    for full_key in estimates.keys() {
        let [tried, next] = [&sent.conf.user_conf, &next].map(|text| value(text, full_key, &sent));
        if differs(tried?, next?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the number that a conf file gives a run for the key of an estimate.
fn value(conf: &str, full_key: &str, spec: &RunSpec) -> anyhow::Result<Option<f64>> {
    let conf = Conf::parse("user.conf", conf)?;
    let key = full_key.rsplit('.').next().unwrap_or(full_key);
    let found = conf.lookup(&spec.benchmark.loadgen_model, spec.scenario.as_str(), key);
    Ok(found.map(Number::as_f64))
}

fn differs(tried: Option<f64>, measured: Option<f64>) -> bool {
    match (tried, measured) {
        (Some(tried), Some(measured)) => (measured - tried).abs() > DIFFERENCE * tried.abs(),
        (tried, measured) => tried != measured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_lab_store::examples::example_draft;

    #[test]
    fn rate_differs_from_ten_percent_on() {
        assert!(!differs(Some(100.0), Some(109.9)) && !differs(Some(100.0), Some(90.1)));
        assert!(differs(Some(100.0), Some(110.1)) && differs(Some(100.0), Some(40.0)));
        assert!(differs(None, Some(1.0)) && !differs(None, None));
        let spec = example_draft("ab".repeat(16).parse().unwrap()).spec;
        let text = "# written by the coordinator\ndigits.Offline.target_qps = 24000\n";
        let found = |key| value(text, key, &spec).unwrap();
        assert_eq!(found("digits.Offline.target_qps"), Some(24_000.0));
        assert_eq!(found("digits.Offline.min_duration"), None);
    }
}
