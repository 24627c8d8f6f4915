//! Plans the files of one result: its logs, measurements, texts and audits.

use std::{collections::BTreeMap, path::PathBuf};

use regatta_catalogue::round::BenchmarkRules;
use regatta_fsutil::regular_file;
use regatta_mllog::read::{ResponseCount, file_name};
use regatta_types::{Division, Scenario, benchmark::Benchmark};
use serde_json::{Map, Value};

use super::{
    Kind, StageError, StagedResult, StagingFinding,
    official::{self, KeptOutput},
    places::{self, Of},
    run::Run,
    select::{Chosen, SystemRuns},
    staging::Staging,
    texts,
    tree::Content,
};
use regatta_submission_check::files::At as _;

impl<'a> Staging<'a> {
    /// Plans a result.
    pub(super) fn result(
        &mut self,
        system: &str,
        scenario: Scenario,
        chosen: Chosen<'a>,
    ) -> Result<(), StageError> {
        let Some(accuracy) = chosen.accuracy else {
            // `select` has reported the missing run.
            return Ok(());
        };
        let performance = chosen.performance;
        let benchmark = &performance.spec.benchmark;
        let (model, rules) = self.model(benchmark);
        if !places::is_name(&model) {
            let what = "its benchmark's name cannot be a directory's";
            let fix = "rename the benchmark in its file under configs/benchmarks";
            self.findings
                .push(StagingFinding::new(performance.called(), what, fix));
            return Ok(());
        }
        let of = Of {
            system,
            model: &model,
            scenario,
        };
        for run in [performance, accuracy] {
            self.judge(run);
        }
        self.logs(of, performance, accuracy)?;
        self.power_of(of, performance)?;
        self.measurements(of, performance, accuracy)?;
        self.accuracy_directories(of, benchmark, rules)?;
        let audits = self.audits_of(of, chosen, rules);
        self.results.push(StagedResult {
            directory: self.places.results(of),
            system: system.to_owned(),
            model: model.clone(),
            scenario,
            performance: performance.id(),
            accuracy: accuracy.id(),
            audits,
        });
        Ok(())
    }

    /// Returns the directory name of a benchmark, as the round spells it, and the round's rules for it.
    fn model(&mut self, benchmark: &Benchmark) -> (String, Option<&'a BenchmarkRules>) {
        let submission = &self.request.round.submission;
        let names = || std::iter::once(&benchmark.name).chain(&benchmark.aliases);
        let none = BTreeMap::new();
        let official = names().find_map(|name| {
            let official = submission.model_of(name, &none);
            submission.knows(official).then_some(official)
        });
        if let Some(official) = official {
            return (official.to_owned(), submission.benchmarks.get(official));
        }
        let own = benchmark.name.clone();
        let mapped = self
            .mapping
            .get(&own)
            .cloned()
            .or_else(|| self.rehearsed_as(benchmark));
        if let Some(official) = &mapped {
            self.mapping.insert(own.clone(), official.clone());
        }
        if mapped.is_none() && self.request.kind == Kind::Submission {
            self.findings.push(StagingFinding::new(
                format!("benchmark {own}"),
                format!("{} has no benchmark of this name", self.request.round.name),
                "in the open division, map it to an official one under [model_mapping] of the answers",
            ));
        }
        let rules = mapped.and_then(|official| submission.benchmarks.get(&official));
        (own, rules)
    }

    /// Returns a benchmark of the round with the same metric. A rehearsal is checked as that benchmark.
    fn rehearsed_as(&self, benchmark: &Benchmark) -> Option<String> {
        if self.request.kind == Kind::Submission {
            return None;
        }
        let metric = benchmark.accuracy.metric.official_name();
        let mut official = self.request.round.submission.benchmarks.iter();
        let same = official.find(|(_, rules)| rules.accuracy.iter().any(|bound| bound.metric == metric));
        same.map(|(name, _)| name.clone())
    }

    /// Reports the reasons that exclude a run from the tree. A rehearsal only notes it.
    pub(super) fn judge(&mut self, run: &Run) {
        if self.request.kind == Kind::Rehearsal {
            let mut faults = run.faults();
            if run.spec.round != self.request.round.name {
                faults.push(format!("it was run by the rules of {}", run.spec.round));
            }
            let notes = faults.iter().map(|fault| format!("{}: {fault}", run.called()));
            self.notes.extend(notes);
            return;
        }
        for reason in run.not_submittable(self.request.round) {
            let fix = "not submittable in any division; `--rehearsal` stages it for practice";
            self.findings.push(StagingFinding::new(run.called(), reason, fix));
        }
        for fault in run.faults() {
            let fix = "repeat the run; staging uses the newest run without findings";
            self.findings.push(StagingFinding::new(run.called(), fault, fix));
        }
        if run.spec.round != self.request.round.name {
            let what = format!("it was run by the rules of {}", run.spec.round);
            let fix = format!("repeat it with --round {}", self.request.round.name);
            self.findings.push(StagingFinding::new(run.called(), what, fix));
        }
    }

    fn logs(&mut self, of: Of<'_>, performance: &Run, accuracy: &Run) -> Result<(), StageError> {
        let results = self.places.results(of);
        for name in [file_name::SUMMARY, file_name::DETAIL] {
            self.proven(performance, name, format!("{results}/performance/run_1/{name}"));
            self.proven(accuracy, name, format!("{results}/accuracy/{name}"));
        }
        let name = file_name::ACCURACY;
        self.proven(accuracy, name, format!("{results}/accuracy/{name}"));
        self.responses(accuracy)?;
        self.accuracy_text(accuracy, format!("{results}/accuracy/{}", official::OUTPUT))
    }

    /// Reports samples without a response. Neither the reference scripts nor the official checker notice them.
    fn responses(&mut self, run: &Run) -> Result<(), StageError> {
        if run.proof(file_name::ACCURACY).is_none() {
            // `logs` has reported the missing log.
            return Ok(());
        }
        let path = run.file(file_name::ACCURACY);
        let samples = run.spec.benchmark.dataset.total_samples;
        let opened = regular_file::open(&path).at("read", &path)?;
        let what = match ResponseCount::read(opened, samples) {
            Ok(ResponseCount { missing: 0, .. }) => return Ok(()),
            Ok(ResponseCount { missing, .. }) => {
                format!("its accuracy log has no response for {missing} of {samples} samples")
            }
            Err(source) => format!("its accuracy log cannot be read: {source}"),
        };
        let fix = "repeat the run; the accuracy of only some samples is not a result";
        self.findings.push(StagingFinding::new(run.called(), what, fix));
        Ok(())
    }

    /// Plans `accuracy.txt`, the reference script's own output. It may only be missing in a rehearsal, whose file then says so.
    fn accuracy_text(&mut self, run: &Run, place: String) -> Result<(), StageError> {
        let Some(log) = run.proof(file_name::ACCURACY) else {
            // `logs` has reported the missing log.
            return Ok(());
        };
        let kept = official::kept(&run.directory, &log.sha256)?;
        let content = match (kept, self.request.kind) {
            (KeptOutput::Output(path), _) => Content::Copy(path),
            (_, Kind::Rehearsal) => match &run.record.accuracy {
                Some(found) => Content::Text(texts::own_accuracy(found)),
                None => Content::Text("REHEARSAL: accuracy was not judged\n".to_owned()),
            },
            (kept, Kind::Submission) => {
                let what = match kept {
                    KeptOutput::Other(why) => {
                        format!("the reference accuracy script's output does not count: {why}")
                    }
                    _ => "the reference accuracy script's output is missing".to_owned(),
                };
                let fix = format!(
                    "regatta accuracy {} --log {} --official SCRIPT",
                    run.spec.benchmark.name,
                    run.file(file_name::ACCURACY).display()
                );
                self.findings.push(StagingFinding::new(run.called(), what, fix));
                return Ok(());
            }
        };
        self.files.insert(place, content);
        Ok(())
    }

    /// Reports required scenarios without a run. Scenarios that can be inferred are only noted.
    pub(super) fn required_scenarios(&mut self, system: &SystemRuns<'_>, fields: &Map<String, Value>) {
        if self.request.division == Division::Open {
            return;
        }
        let kind = fields
            .get("system_type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mut present: BTreeMap<&str, (Vec<Scenario>, &Benchmark)> = BTreeMap::new();
        for ((name, scenario), chosen) in &system.results {
            let entry = present.entry(name);
            let entry = entry.or_insert_with(|| (Vec::new(), &chosen.performance.spec.benchmark));
            entry.0.push(*scenario);
        }
        for (name, (scenarios, benchmark)) in present {
            let rules = self
                .request
                .round
                .submission
                .benchmarks
                .get(&self.model(benchmark).0);
            let required = rules.and_then(|rules| rules.required(kind)).unwrap_or_default();
            for scenario in required.iter().filter(|scenario| !scenarios.contains(scenario)) {
                let place = format!("system {}, {name}", system.name);
                let what = format!("the required scenario {scenario} has no runs");
                let inferable = self
                    .request
                    .round
                    .submission
                    .inferences
                    .iter()
                    .any(|inference| inference.to == *scenario && scenarios.contains(&inference.from));
                if inferable || self.request.kind == Kind::Rehearsal {
                    let way = if inferable {
                        ": run it, or infer it with `submission infer`"
                    } else {
                        ""
                    };
                    self.notes.push(format!("{place}: {what}{way}"));
                } else {
                    let fix = format!("regatta run --benchmark {name} --scenario {scenario}");
                    self.findings.push(StagingFinding::new(place, what, fix));
                }
            }
        }
    }

    /// Plans a file of a run, which is compared with the device's proof when it is copied.
    pub(super) fn proven(&mut self, run: &Run, name: &str, place: String) {
        match run.proof(name) {
            Some(proof) => {
                let content = Content::Proven {
                    from: run.file(name),
                    sha256: proof.sha256.clone(),
                };
                self.files.insert(place, content);
            }
            None => {
                let what = format!("it has no {name}");
                self.findings
                    .push(StagingFinding::new(run.called(), what, "repeat the run"));
            }
        }
    }

    /// Plans a file that the operator supplies.
    pub(super) fn copy(&mut self, place: String, from: PathBuf, key: &str) {
        match std::fs::metadata(&from) {
            Ok(found) if found.is_file() => drop(self.files.insert(place, Content::Copy(from))),
            Ok(_) => {
                let what = format!("{} is not a file", from.display());
                self.findings
                    .push(StagingFinding::new(key, what, "name the file itself"));
            }
            Err(error) => self.unreadable(key, &from, &error),
        }
    }

    pub(super) fn unreadable(&mut self, key: &str, path: &std::path::Path, error: &std::io::Error) {
        let what = format!("{} cannot be read: {error}", path.display());
        self.findings.push(StagingFinding::new(
            key,
            what,
            "check that it exists; paths are relative to the directory of the answers",
        ));
    }

    /// Plans a JSON document.
    pub(super) fn json(&mut self, place: String, fields: &Map<String, Value>) {
        // A map of JSON values can always be serialized.
        let mut text = serde_json::to_string_pretty(fields).unwrap_or_default();
        text.push('\n');
        self.files.insert(place, Content::Text(text));
    }
}
