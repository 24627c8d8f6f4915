//! The parts of a run besides its state: the draft before it is sent and the outcome after it is recorded.

use std::collections::BTreeMap;

use regatta_types::{
    RunId,
    documents::{AccuracyResult, AuditResult, Judgement, Record, RunSpec, StateProof, WindowCost},
};
use serde::{Deserialize, Serialize};

use super::now;

/// LoadGen's keys of a rate that a user can fix.
const RATE_KEYS: [&str; 2] = ["target_qps", "target_latency"];

/// A requested run. Rates are estimated when it is sent, from what the device has shown by then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunDraft {
    /// The spec; its `user.conf` has the values that are known without estimates.
    pub spec: RunSpec,
    /// The benchmark file's initial values, from `model.scenario.key` to value.
    pub guesses: BTreeMap<String, String>,
    /// The user's settings, from `model.scenario.key` to value. Nothing overrides them.
    pub user_settings: BTreeMap<String, String>,
    /// Whether the spec's conf files are sent as they are: the run repeats another one, and no rate is estimated for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_conf_fixed: bool,
    /// Whether the run may start on a quarantined or drained device. Health checks and `--force` set it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// The time that its device may have it, in seconds, besides the wait for its gate. `None` without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<u64>,
}

impl RunDraft {
    /// Returns the same request with a new id.
    pub fn repeated(&self) -> Self {
        let mut draft = self.clone();
        draft.spec.run = RunId::now();
        draft.spec.created = now();
        draft
    }

    /// Returns the key by which the user has fixed the rate, if the user has: no measured rate replaces it.
    pub fn fixed_rate(&self) -> Option<&str> {
        let mut keys = self
            .user_settings
            .keys()
            .map(|full| full.rsplit('.').next().unwrap_or(full));
        keys.find(|key| RATE_KEYS.contains(key))
    }

    /// Returns the text of `user.conf`. Estimates override initial values, and the user's settings override both.
    pub fn user_conf(&self, estimates: &BTreeMap<String, String>) -> String {
        let mut lines = self.guesses.clone();
        lines.extend(estimates.clone());
        // LoadGen prefers a line of the model and scenario to a line of the user's for `*`.
        lines.retain(|key, _| !self.user_settings.keys().any(|user| is_same_setting(user, key)));
        lines.extend(self.user_settings.clone());
        let mut text = String::from(
            "# The benchmark's initial values, this device's measured rates, and the user's settings\n",
        );
        regatta_catalogue::round::render_conf_lines(&mut text, &lines);
        text
    }
}

/// Returns whether a line for `pattern`, with or without `*`, is meant for the same setting as `full_key`.
pub fn is_same_setting(pattern: &str, full_key: &str) -> bool {
    // A model's name may contain dots.
    let [pattern, full_key] = [pattern, full_key].map(|key| key.rsplitn(3, '.').collect::<Vec<_>>());
    pattern.len() == full_key.len()
        && pattern.first() == full_key.first()
        && pattern
            .iter()
            .zip(&full_key)
            .all(|(part, own)| *part == "*" || part == own)
}

/// The outcome of a recorded run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Verdict and figures. The record has them, too.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// Accuracy, if the run logged answers.
    pub accuracy: Option<AccuracyResult>,
    /// The parts that could not be judged, with reasons.
    #[serde(default)]
    pub not_judged: Vec<String>,
    /// Differences between the device's messages or files and its evidence.
    #[serde(default)]
    pub contradictions: Vec<String>,
    /// What may have disturbed the measurement, as the device reports it.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Delivered bytes.
    pub bytes: u64,
    /// Whether every file of the evidence is present with its SHA-256.
    pub complete: bool,
    /// Whether the evidence's signature matches the device's key.
    pub signed: Option<bool>,
    /// Whether the device may forget the run. Every file is here with valid evidence, or the device never had any.
    pub forgettable: bool,
    /// The agent's own resource use while LoadGen ran.
    #[serde(default)]
    pub window: Option<WindowCost>,
    /// The result of the audit, if the run is one.
    #[serde(default)]
    pub audit: Option<AuditResult>,
    /// The engine that was loaded, as its agent describes it: version, hardware, keys of TensorRT's engines.
    #[serde(default)]
    pub loaded_engine: Option<String>,
    /// The proof of the device's state, if its agent provides one.
    #[serde(default)]
    pub device_state: Option<StateProof>,
}

impl RunOutcome {
    /// Returns the outcome of a run that was recorded without reading its files.
    pub fn set_aside(record: &Record) -> Self {
        Self {
            not_judged: record.not_judged.clone(),
            bytes: record.delivery.bytes,
            ..Self::default()
        }
    }

    /// Returns whether LoadGen accepts the run: VALID, or no verdict where none is expected.
    pub fn has_passed(&self, expects_verdict: bool) -> bool {
        self.judgement.valid.unwrap_or(!expects_verdict)
    }
}
