//! Selects a run's values from a system's file, and records their source in the run's spec.

use std::collections::BTreeMap;

use regatta_types::{
    Scenario,
    benchmark::Benchmark,
    documents::{EngineKind, PowerSetting, SystemUse},
};

use super::{System, SystemRun};

/// The run that values are selected for.
#[derive(Debug, Clone, Copy)]
pub struct SystemRequest<'a> {
    /// The benchmark.
    pub benchmark: &'a Benchmark,
    /// The scenario.
    pub scenario: Scenario,
    /// The power setting of the board.
    pub power: PowerSetting,
    /// The engine.
    pub engine: EngineKind,
}

/// The values of a file for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemValues {
    /// Settings of engine and harness, by name.
    pub settings: BTreeMap<String, String>,
    /// Lines of `user.conf`, by the key after `model.scenario`.
    pub conf: BTreeMap<String, String>,
    /// The source of the values.
    pub from: SystemUse,
}

impl System {
    /// Returns the file's values for a run. `file` and `sha256` identify the file in the record.
    ///
    /// `sim` uses the values of `tensorrt` when there are none of its own. When the file only has the other power setting, its settings
    /// apply but its rates do not.
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
        let settings = run.settings.texts();
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
            source: run.source_in_words(),
            derived: run.derived,
            settings: settings.keys().cloned().collect(),
            conf: conf.keys().cloned().collect(),
        };
        Some(SystemValues { settings, conf, from })
    }
}

impl SystemValues {
    /// Adds the settings that `user_settings` does not contain. Removes the others from the record.
    pub fn merge_under(&mut self, user_settings: &mut BTreeMap<String, String>) {
        self.from
            .settings
            .retain(|name| !user_settings.contains_key(name));
        for name in &self.from.settings {
            user_settings.insert(name.clone(), self.settings[name].clone());
        }
    }
}

impl SystemRun {
    /// Returns the source as text.
    #[must_use]
    pub fn source_in_words(&self) -> String {
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
