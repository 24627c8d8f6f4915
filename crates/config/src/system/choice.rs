//! Which values of a system's file a run takes, and what is kept of that in the run's spec.

use std::collections::BTreeMap;

use regatta_types::{
    Scenario,
    benchmark::Benchmark,
    documents::{EngineKind, PowerSetting, SystemUse},
};

use super::{System, SystemRun};

/// The run that values are wanted for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The benchmark.
    pub benchmark: &'a Benchmark,
    /// The scenario.
    pub scenario: Scenario,
    /// The state of the board.
    pub power: PowerSetting,
    /// The engine.
    pub engine: EngineKind,
}

/// What a file has for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// Settings of engine and harness, by name.
    pub settings: BTreeMap<String, String>,
    /// Lines of `user.conf`, by the key behind `model.scenario`.
    pub conf: BTreeMap<String, String>,
    /// Where they come from.
    pub from: SystemUse,
}

impl System {
    /// What the file has for a run. `file` and `sha256` tell which file it is.
    ///
    /// `sim` stands in for `tensorrt` and takes its values where there are none of its own. Where only the other state of the
    /// board is known, its settings hold, and its rates do not.
    #[must_use]
    pub fn choose(&self, wanted: &Wanted<'_>, file: &str, sha256: Option<&str>) -> Option<Chosen> {
        let engines = [
            Some(wanted.engine),
            (wanted.engine == EngineKind::Sim).then_some(EngineKind::Tensorrt),
        ];
        let of = |engine: EngineKind| {
            let mut runs = self.runs.iter().filter(move |run| {
                run.engine == engine
                    && run.scenario == wanted.scenario
                    && wanted.benchmark.is_called(&run.benchmark)
            });
            let any = runs.clone().next();
            runs.find(|run| run.power == wanted.power).or(any)
        };
        let run = engines.into_iter().flatten().find_map(of)?;
        let settings = run.settings.texts();
        let conf = if run.power == wanted.power {
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
        Some(Chosen { settings, conf, from })
    }
}

impl Chosen {
    /// Puts the settings under those that were given, and forgets in the record those that were given otherwise.
    pub fn merge_under(&mut self, given: &mut BTreeMap<String, String>) {
        self.from.settings.retain(|name| !given.contains_key(name));
        for name in &self.from.settings {
            given.insert(name.clone(), self.settings[name].clone());
        }
    }
}

impl SystemRun {
    /// The source, in words.
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
