//! Selects a run's values from a system's file, and records their source in the run's spec.

use std::collections::BTreeMap;

use regatta_types::{
    Scenario,
    benchmark::Benchmark,
    documents::{EngineKind, PowerSetting, SystemUse},
    engine_settings::EngineSettings,
};

use super::{System, SystemRun};

/// The run that values are selected for.
#[derive(Debug, Clone, Copy)]
pub struct SystemRequest<'a> {
    pub benchmark: &'a Benchmark,
    pub scenario: Scenario,
    /// The power setting of the board.
    pub power: PowerSetting,
    pub engine: EngineKind,
}

/// The values of a file for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemValues {
    /// Settings of engine and harness.
    pub settings: EngineSettings,
    /// Lines of `user.conf`, by the key after `model.scenario`.
    pub conf: BTreeMap<String, String>,
    /// The source of the values.
    pub from: SystemUse,
}

impl System {
    /// Returns the file's values for a run. `file` and `sha256` identify the file in the record.
    ///
    /// `sim` uses the values of `tensorrt` if it has none. If the file only has the other power setting, its settings apply, but its rates do not.
    #[must_use]
    pub fn choose(
        &self,
        request: &SystemRequest<'_>,
        file: &str,
        sha256: Option<&str>,
    ) -> Option<SystemValues> {
        let engines = [
            Some(request.engine),
            (request.engine == EngineKind::Sim).then_some(EngineKind::Tensorrt),
        ];
        let of = |engine: EngineKind| {
            let mut runs = self.runs.iter().filter(move |run| {
                run.engine == engine
                    && run.scenario == request.scenario
                    && request.benchmark.is_called(&run.benchmark)
            });
            let any = runs.clone().next();
            runs.find(|run| run.power == request.power).or(any)
        };
        let run = engines.into_iter().flatten().find_map(of)?;
        let settings = run.settings.clone();
        let conf = if run.power == request.power {
            run.expected.conf(run.scenario)
        } else {
            BTreeMap::new()
        };
        let from = SystemUse {
            file: file.to_owned(),
            sha256: sha256.map(str::to_owned),
            system: self.name.clone(),
            power: run.power,
            source: run.describe_source(),
            derived: run.derived,
            settings: names(&settings),
            conf: conf.keys().cloned().collect(),
        };
        Some(SystemValues { settings, conf, from })
    }
}

impl SystemValues {
    /// Returns the settings of a run: the user's, and the system's where the user has set none. The record then names only the latter.
    pub fn settings_under(&mut self, user: EngineSettings) -> EngineSettings {
        self.from.settings.retain(|name| user.value(name).is_none());
        user.or(self.settings.clone())
    }
}

/// Returns the names of the settings that have a value.
fn names(settings: &EngineSettings) -> Vec<String> {
    let mut names: Vec<String> = settings
        .iter()
        .map(|(setting, _)| setting.name.to_owned())
        .collect();
    names.sort_unstable();
    names
}

impl SystemRun {
    /// Returns the source as text.
    #[must_use]
    pub fn describe_source(&self) -> String {
        let source = &self.source;
        let published = [&source.submitter, &source.round, &source.file, &source.system];
        let mut words: Vec<&str> = published.into_iter().flatten().map(String::as_str).collect();
        words.extend(source.measured.as_deref());
        let words = words.join(", ");
        match &source.rule {
            Some(rule) if words.is_empty() => rule.clone(),
            Some(rule) => format!("{words}; {rule}"),
            None => words,
        }
    }
}
