//! The policy for INVALID runs whose rate was a guess. LoadGen plans the number of queries by the expected rate. The device's speed is known
//! after the first run, so the same request is sent again with the rates that the run has shown. A run is not repeated because of noise.
//!
//! Commands, campaigns and power sessions count retries and request the runs.

use std::mem;

use anyhow::Context as _;
use regatta_fsutil::regular_file::{self, MAX_DOCUMENT};
use regatta_loadgen_conf::{Conf, Number};
use regatta_types::documents::{Document as _, RunSpec};

use super::{estimate::estimate, rate_advice::is_fixed_by_rate};
use regatta_lab_store::{RunDraft, RunRow, Store, workspace::Workspace};

/// The relative difference between the tried and the measured rate from which a run is repeated. Equal runs of a device differ by less.
const DIFFERENCE: f64 = 0.1;

/// The number of times that a run is repeated because its rate was a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateRetries {
    /// The maximum.
    pub max: u64,
}

impl Default for RateRetries {
    /// A second retry helps where the first one's rate was estimated from a run that was far too short.
    fn default() -> Self {
        Self { max: 2 }
    }
}

impl RateRetries {
    /// Returns the draft that repeats a run which has been repeated `earlier` times, or `None`. A run is repeated if it is INVALID, another rate
    /// can fix it, and the measured rate differs from the tried one by more than 10 %. A rate from the user is never changed. Audits repeat a
    /// fixed spec and are not repeated here.
    ///
    /// # Errors
    /// Returns an error when the store fails or the run's spec cannot be read.
    pub fn next(
        self,
        row: &RunRow,
        earlier: u64,
        workspace: &Workspace,
        store: &Store,
    ) -> anyhow::Result<Option<RunDraft>> {
        let is_fixable = row.outcome.as_ref().is_some_and(|outcome| {
            outcome.judgement.valid == Some(false) && is_fixed_by_rate(&outcome.judgement.reasons)
        });
        let is_repeated = earlier < self.max
            && is_fixable
            && row.audit().is_none()
            && has_other_rate(row, workspace, store)?;
        Ok(is_repeated.then(|| row.draft.repeated()))
    }

    /// Repeats runs until none is INVALID because of its rate, or the retries are used up. `run` gets the rows to repeat and their drafts,
    /// requests these, and returns their rows when they are over, in order; they replace those in `rows`. Returns the replaced rows.
    ///
    /// # Errors
    /// Returns the error of `run`, or when the store fails or a run's spec cannot be read.
    pub fn repeat<E: From<anyhow::Error>>(
        self,
        rows: &mut [RunRow],
        workspace: &Workspace,
        store: &Store,
        mut run: impl FnMut(&[&RunRow], &[RunDraft]) -> Result<Vec<RunRow>, E>,
    ) -> Result<Vec<RunRow>, E> {
        let mut replaced = Vec::new();
        for earlier in 0..self.max {
            let (mut indexes, mut drafts) = (Vec::new(), Vec::new());
            for (index, row) in rows.iter().enumerate() {
                if let Some(draft) = self.next(row, earlier, workspace, store)? {
                    indexes.push(index);
                    drafts.push(draft);
                }
            }
            if drafts.is_empty() {
                break;
            }
            let invalid: Vec<&RunRow> = indexes.iter().filter_map(|&index| rows.get(index)).collect();
            for (index, newer) in indexes.iter().zip(run(&invalid, &drafts)?) {
                if let Some(row) = rows.get_mut(*index) {
                    replaced.push(mem::replace(row, newer));
                }
            }
        }
        Ok(replaced)
    }
}

/// Returns whether the run would be sent with another rate now.
fn has_other_rate(row: &RunRow, workspace: &Workspace, store: &Store) -> anyhow::Result<bool> {
    let sent = regular_file::read(&workspace.run(row.id).spec(), MAX_DOCUMENT).context("the run's spec")?;
    let sent = RunSpec::from_json(&sent)?;
    let past = store.runs().recorded_like(&row.draft)?;
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
    fn a_rate_is_another_from_ten_percent_on() {
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
