//! A request with what the catalogue and the device have for it, and its draft. The draft has everything that does not depend on the device's
//! measured speed.

use std::{collections::BTreeMap, mem};

use regatta_catalogue::{round::Round, system::SystemValues};
use regatta_loadgen_conf::{
    Conf, ConfError, ConfKind, SettingError, SettingSources, TestSettings, UserKeyError, full_user_key,
};
use regatta_types::{
    DeviceId, Mode, RunId, Scenario,
    benchmark::Benchmark,
    documents::{
        ConfTexts, Delivery, EngineSpec, GateSpec, LoadgenChoice, RunLength, RunSpec, RunTask, StateSpec,
    },
};

use super::markers::actual_length;
use regatta_lab_store::{self as store, RunDraft};

/// The duration of a `--test-run` in milliseconds, as in NVIDIA's harness.
const TEST_RUN_MS: u64 = 60_000;

/// An error in a request.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A conf line of the user would have no effect.
    #[error(transparent)]
    ConfKey(#[from] UserKeyError),
    /// A value has more than one word, which `user.conf` cannot hold.
    #[error("the value of the conf key `{0}` must be one word")]
    ConfValue(String),
    /// FindPeakPerformance is requested for another scenario than Server.
    #[error("FindPeakPerformance is a mode of the Server scenario, not of {0}")]
    PeakOutsideServer(Scenario),
    /// LoadGen cannot use a value.
    #[error("the run's settings cannot be used")]
    Conf(#[from] ConfError),
    /// No run with these settings can start or end.
    #[error("{scenario} cannot run with these settings")]
    Settings {
        scenario: Scenario,
        /// The setting, and the values that it allows.
        #[source]
        source: SettingError,
    },
}

/// A request for a device, with benchmark, round, system and state.
#[derive(Debug, Clone)]
pub struct ResolvedRequest<'a> {
    pub device: DeviceId,
    pub benchmark: &'a Benchmark,
    /// The round whose rules apply.
    pub round: &'a Round,
    pub scenario: Scenario,
    pub mode: Mode,
    /// The engine that computes the answers.
    pub engine: EngineSpec,
    /// The LoadGen that drives the run.
    pub loadgen: LoadgenChoice,
    /// The requested length. The draft has the length that results from all settings.
    pub length: RunLength,
    /// The time of the logs' delivery.
    pub delivery: Delivery,
    /// The values of the device's system file for this run, if it has any.
    pub system: Option<SystemValues>,
    /// The user's lines for `user.conf`, by key or by `model.scenario.key`.
    pub conf: BTreeMap<String, String>,
    /// The requested device state. `None` does not change the state.
    pub state: Option<StateSpec>,
    /// The conditions that the device must meet before the run starts.
    pub gate: Option<GateSpec>,
    /// The work of the device.
    pub task: RunTask,
}

impl ResolvedRequest<'_> {
    /// Creates the run's draft with a new id.
    ///
    /// # Errors
    /// Returns `RequestError` when the request contradicts itself.
    pub fn draft(&self) -> Result<RunDraft, RequestError> {
        if self.mode == Mode::FindPeakPerformance && self.scenario != Scenario::Server {
            return Err(RequestError::PeakOutsideServer(self.scenario));
        }
        let user_settings = self.user_settings()?;
        let guesses = self
            .benchmark
            .user_conf
            .iter()
            .filter(|(key, _)| concerns(key, self.scenario));
        let spec = RunSpec {
            schema: RunSpec::schema_with(self.state.as_ref(), self.gate.as_ref(), self.task),
            run: RunId::now(),
            device: self.device.clone(),
            created: store::now(),
            round: self.round.name.clone(),
            benchmark: self.benchmark.clone(),
            scenario: self.scenario,
            mode: self.mode,
            engine: self.engine.clone(),
            loadgen: self.loadgen.clone(),
            length: self.length,
            conf: ConfTexts {
                mlperf_conf: self.round.render_mlperf_conf(&self.benchmark.mlperf_conf),
                user_conf: String::new(),
                audit_config: None,
            },
            delivery: self.delivery,
            audit: None,
            system: None,
            state: self.state.clone(),
            gate: self.gate.clone(),
            task: self.task,
            assets: None,
        };
        let mut draft = RunDraft {
            spec,
            guesses: guesses.map(|(key, value)| (key.clone(), value.clone())).collect(),
            user_settings,
            is_conf_fixed: false,
            forced: false,
            limit_s: None,
        };
        if let Some(mut chosen) = self.system.clone() {
            let user = mem::take(&mut draft.spec.engine.settings);
            draft.spec.engine.settings = chosen.settings_under(user);
            let lines = chosen.conf.into_iter();
            draft
                .guesses
                .extend(lines.map(|(key, value)| (self.full_key(&key), value)));
            draft.spec.system = Some(chosen.from);
        }
        draft.spec.conf.user_conf = draft.user_conf(&BTreeMap::new());
        check(&draft.spec)?;
        draft.spec.length = match self.task {
            // The length of a search is no setting of LoadGen.
            RunTask::Tune => self.length,
            _ => actual_length(&draft.spec, self.length),
        };
        Ok(draft)
    }

    /// Returns the user's settings by full keys. Conf lines override the length.
    fn user_settings(&self) -> Result<BTreeMap<String, String>, RequestError> {
        let mut user_settings = BTreeMap::new();
        let duration = match self.length {
            _ if self.task == RunTask::Tune => None,
            RunLength::Full => None,
            RunLength::TestRun => Some(TEST_RUN_MS),
            RunLength::Duration(milliseconds) => Some(milliseconds),
        };
        if let Some(milliseconds) = duration {
            user_settings.insert(self.full_key("min_duration"), milliseconds.to_string());
        }
        for (key, value) in &self.conf {
            if value.split_whitespace().count() > 1 {
                return Err(RequestError::ConfValue(key.clone()));
            }
            let full_key = full_user_key(key, &self.benchmark.loadgen_model, self.scenario)?;
            user_settings.retain(|length, _| !store::is_same_setting(&full_key, length));
            user_settings.insert(full_key, value.clone());
        }
        Ok(user_settings)
    }

    fn full_key(&self, key: &str) -> String {
        format!("{}.{}.{key}", self.benchmark.loadgen_model, self.scenario)
    }
}

/// Rejects settings that the device would reject, before anything is sent.
fn check(spec: &RunSpec) -> Result<(), RequestError> {
    let mut settings = TestSettings::new(spec.scenario, spec.mode);
    let (mut sources, model) = (SettingSources::default(), &spec.benchmark.loadgen_model);
    for (name, text, kind) in [
        ("mlperf.conf", &spec.conf.mlperf_conf, ConfKind::Mlperf),
        ("user.conf", &spec.conf.user_conf, ConfKind::User),
    ] {
        let conf = Conf::parse(name, text)?;
        sources.add(&conf, kind, model, spec.scenario);
        settings.apply(&conf, kind, model)?;
    }
    settings.check(&sources).map_err(|source| RequestError::Settings {
        scenario: spec.scenario,
        source,
    })
}

/// Returns whether a conf key of the form `model.scenario.key` applies to a scenario.
fn concerns(key: &str, scenario: Scenario) -> bool {
    key.split('.')
        .nth(1)
        .is_some_and(|named| named == "*" || named == scenario.as_str())
}

#[cfg(test)]
mod tests {
    use regatta_types::{
        documents::{EngineKind, PowerSetting},
        engine_settings::EngineSettings,
    };

    use super::*;
    use regatta_catalogue::{
        catalogue::Catalogue,
        system::{System, SystemRequest},
    };

    fn draft(change: impl FnOnce(&mut ResolvedRequest<'_>)) -> Result<RunDraft, RequestError> {
        let catalogue = Catalogue::read(None).unwrap();
        let mut request = ResolvedRequest {
            device: "0123456789abcdef0123456789abcdef".parse().unwrap(),
            benchmark: catalogue.benchmark("digits").unwrap(),
            round: catalogue.round(None).unwrap(),
            scenario: Scenario::Offline,
            mode: Mode::PerformanceOnly,
            engine: EngineSpec {
                kind: EngineKind::Tract,
                settings: EngineSettings::default(),
            },
            loadgen: LoadgenChoice::Native,
            length: RunLength::Duration(3000),
            delivery: Delivery::After,
            system: None,
            conf: BTreeMap::new(),
            state: None,
            gate: None,
            task: RunTask::Measurement,
        };
        change(&mut request);
        request.draft()
    }

    #[test]
    fn user_settings_come_last() {
        let draft = draft(|request| {
            request.conf.insert("target_qps".to_owned(), "7".to_owned());
            request
                .conf
                .insert("*.Offline.min_query_count".to_owned(), "9".to_owned());
        })
        .unwrap();
        insta::assert_snapshot!(draft.spec.conf.user_conf, @r"
        # The benchmark's initial values, this device's measured rates, and the user's settings
        *.Offline.min_query_count = 9
        digits.Offline.min_duration = 3000
        digits.Offline.target_qps = 7
        ");
    }

    /// LoadGen would prefer the line of the model, which is not the user's.
    #[test]
    fn a_users_line_for_all_models_overrides_lines_of_the_model() {
        let draft = draft(|request| {
            for (key, value) in [("*.Offline.target_qps", "7"), ("*.*.min_duration", "5000")] {
                request.conf.insert(key.to_owned(), value.to_owned());
            }
        })
        .unwrap();
        let estimates = BTreeMap::from([("digits.Offline.target_qps".to_owned(), "1234".to_owned())]);
        insta::assert_snapshot!(draft.user_conf(&estimates), @r"
        # The benchmark's initial values, this device's measured rates, and the user's settings
        *.*.min_duration = 5000
        *.Offline.target_qps = 7
        ");
    }

    #[test]
    fn estimates_override_guesses_and_user_settings_override_estimates() {
        let estimates = BTreeMap::from([("digits.Offline.target_qps".to_owned(), "1234".to_owned())]);
        let guessed = draft(|_| {}).unwrap();
        assert!(guessed.user_conf(&BTreeMap::new()).contains("target_qps = 20000"));
        assert!(guessed.user_conf(&estimates).contains("target_qps = 1234"));
        let user_settings =
            draft(|request| drop(request.conf.insert("target_qps".to_owned(), "7".to_owned()))).unwrap();
        assert!(user_settings.user_conf(&estimates).contains("target_qps = 7"));
    }

    #[test]
    fn user_settings_override_a_systems_values_which_override_the_benchmarks() {
        let system = System::from_toml(
            "schema = 1\nname = 'boat'\ntitle = 'Boat'\n[[run]]\nbenchmark = 'digits'\nscenario = 'Offline'\n\
             engine = 'tract'\nsource = { measured = 'today' }\n[run.settings]\nbatch_size = 4\ninference_streams = 2\n\
             [run.expected]\noffline_expected_qps = 77.5\n",
        )
        .unwrap();
        let drafted = |batch_size: Option<usize>| {
            draft(|request| {
                let requested = SystemRequest {
                    benchmark: request.benchmark,
                    scenario: request.scenario,
                    power: PowerSetting::MaxP,
                    engine: request.engine.kind,
                };
                request.system = system.choose(&requested, "boat.toml", Some("00"));
                request.engine.settings.batch_size = batch_size;
            })
            .unwrap()
        };
        let taken = drafted(None).spec;
        assert_eq!(taken.engine.settings.batch_size, Some(4));
        assert!(taken.conf.user_conf.contains("digits.Offline.target_qps = 77.5"));
        let taken = drafted(Some(9)).spec;
        assert_eq!(taken.engine.settings.batch_size, Some(9));
        let record = taken.system.unwrap();
        assert_eq!(
            (record.settings, record.conf),
            (
                vec!["inference_streams".to_owned()],
                vec!["target_qps".to_owned()]
            )
        );
        assert_eq!(
            (record.file.as_str(), record.source.as_str()),
            ("boat.toml", "today")
        );
    }

    #[test]
    fn contradictions_are_refused() {
        let error = draft(|request| drop(request.conf.insert("a.b".to_owned(), "1".to_owned()))).unwrap_err();
        assert_eq!(error, UserKeyError::Form("a.b".to_owned()).into());
        let two_lines = "1\n*.*.mode = 1".to_owned();
        let error =
            draft(|request| drop(request.conf.insert("min_query_count".to_owned(), two_lines))).unwrap_err();
        assert_eq!(error, RequestError::ConfValue("min_query_count".to_owned()));
        let error = draft(|request| request.mode = Mode::FindPeakPerformance).unwrap_err();
        assert_eq!(error, RequestError::PeakOutsideServer(Scenario::Offline));
    }

    /// The messages equal the device's, but come before the run is sent.
    #[test]
    fn settings_with_which_no_run_ends_are_refused() {
        let refused = |key: &str, value: &str| {
            let error = draft(|request| {
                request.scenario = Scenario::MultiStream;
                request.conf.insert(key.to_owned(), value.to_owned());
            })
            .unwrap_err();
            format!("{:#}", anyhow::Error::from(error))
        };
        assert_eq!(
            refused("samples_per_query", "-1"),
            "the run's settings cannot be used: user.conf, line 3: `digits.MultiStream.samples_per_query` is -1, but must \
             be an integer from 0 to 18446744073709551615; hint: leave the line out for LoadGen's default"
        );
        let error = refused("samples_per_query", "9223372036854775807");
        assert!(
            error.starts_with(
                "MultiStream cannot run with these settings: user.conf, line 3: samples_per_query is 9223372036854775807, but must be from 1"
            ),
            "{error}"
        );
        let long = draft(|request| request.length = RunLength::Duration(u64::MAX)).unwrap_err();
        assert!(matches!(long, RequestError::Settings { .. }), "{long}");
    }
}
