//! What the store keeps of a run beside its state: the draft before it is sent, the outcome after it is recorded.

use std::collections::BTreeMap;

use regatta_types::{
    Mode,
    documents::{AccuracyResult, AuditResult, RunSpec, StateProof, WindowCost},
};
use serde::{Deserialize, Serialize};

/// A run as asked for. Rates are estimated when it is sent, from what the device has shown by then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunDraft {
    /// The spec; its `user.conf` holds what is known without estimates.
    pub(crate) spec: RunSpec,
    /// First guesses of the benchmark's file, `model.scenario.key` to value.
    pub(crate) guesses: BTreeMap<String, String>,
    /// What the user gave, which nothing overrides, `model.scenario.key` to value.
    #[serde(rename = "given")]
    pub(crate) user_settings: BTreeMap<String, String>,
}

impl RunDraft {
    /// The text of `user.conf`: first guesses, then estimates, then what was given; the later wins.
    pub(crate) fn user_conf(&self, estimates: &BTreeMap<String, String>) -> String {
        let mut lines = self.guesses.clone();
        lines.extend(estimates.clone());
        lines.extend(self.user_settings.clone());
        let mut text = String::from(
            "# First guesses of the benchmark, this device's own rates, and what was asked for\n",
        );
        regatta_config::round::render_conf_lines(&mut text, &lines);
        text
    }
}

/// LoadGen's own figure of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Metric {
    /// Its name, as LoadGen's summary has it.
    pub(crate) name: String,
    /// Its value.
    pub(crate) value: f64,
    /// Its unit.
    pub(crate) unit: String,
}

/// What a run has shown of its device's speed: what later runs' settings are estimated from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rates {
    /// Samples per second.
    #[serde(default)]
    pub(crate) samples_per_second: Option<f64>,
    /// Time of one query in nanoseconds, where queries follow one another.
    #[serde(default)]
    pub(crate) query_ns: Option<f64>,
    /// The Server rate that was asked for.
    #[serde(default)]
    pub(crate) target_qps: Option<f64>,
}

/// The figures of a recorded run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunOutcome {
    /// LoadGen's verdict, where there is one.
    pub(crate) valid: Option<bool>,
    /// LoadGen's reasons for INVALID.
    pub(crate) reasons: Vec<String>,
    /// LoadGen's own figure, where there is one.
    pub(crate) metric: Option<Metric>,
    /// Accuracy, where answers were logged.
    pub(crate) accuracy: Option<AccuracyResult>,
    /// What could not be found out about the run, and why.
    #[serde(default)]
    pub(crate) not_judged: Vec<String>,
    /// Where the device's messages or files differ from its evidence.
    #[serde(default)]
    pub(crate) contradictions: Vec<String>,
    /// Samples that the run computed, where the log tells.
    pub(crate) samples: Option<u64>,
    /// Bytes delivered.
    pub(crate) bytes: u64,
    /// Whether every file of the evidence is here with the evidence's SHA-256.
    pub(crate) complete: bool,
    /// Whether the evidence's signature fits the device's key.
    pub(crate) signed: Option<bool>,
    /// Why this is not a valid measurement; empty when nothing stands against it.
    pub(crate) not_a_measurement: Vec<String>,
    /// Whether the device may forget the run: every file is here with valid evidence, or the device never had any.
    pub(crate) forgettable: bool,
    /// What it has shown of the device's speed.
    pub(crate) rates: Rates,
    /// What the agent itself did while LoadGen ran.
    #[serde(default)]
    pub(crate) window: Option<WindowCost>,
    /// What the audit came to, where the run is one.
    #[serde(default)]
    pub(crate) audit: Option<AuditResult>,
    /// The proof of the device's state, where its agent gives one.
    #[serde(default)]
    pub(crate) device_state: Option<StateProof>,
}

impl RunOutcome {
    /// Whether LoadGen is content with the run: VALID, or nothing said in a mode without a verdict.
    pub(crate) const fn has_passed(&self, mode: Mode) -> bool {
        match self.valid {
            Some(valid) => valid,
            None => !mode.has_verdict(),
        }
    }
}
