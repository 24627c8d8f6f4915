//! The monolith's check of a scenario's accuracy directory.

use regatta_catalogue::round::{BenchmarkRules, OfficialCheck, Trait};
use regatta_mllog::read::Value;

use super::{
    super::{
        super::{
            accuracy,
            file_set::{self, FileSet},
            path_fault::PathFault,
        },
        Crash, performance,
    },
    Accuracy, MonolithJudge,
};

impl MonolithJudge<'_> {
    /// Returns the accuracy, or `None` if the check of the scenario ends here.
    pub(super) fn accuracy(
        &mut self,
        rules: &BenchmarkRules,
        closed: bool,
    ) -> Result<Option<Accuracy>, Crash> {
        let directory = format!("{}/accuracy", self.outcome.path);
        let fatal = self.context.checker.fails(OfficialCheck::AccuracyFileSet);
        if !self.context.tree.exists(&format!("{directory}/accuracy.txt")) {
            self.note(&directory, "there is no accuracy.txt".to_owned(), true);
            self.outcome.errors += u64::from(fatal);
            let accuracy = Accuracy {
                valid: false,
                shown: String::new(),
            };
            return Ok((!fatal).then_some(accuracy));
        }
        if let Some(fault) = file_set::fault(self.context, &directory, FileSet::ACCURACY) {
            self.note(&directory, fault, fatal);
            if fatal {
                self.outcome.errors += 1;
                return Ok(None);
            }
        }
        let mut accuracy = self.accuracy_directory(rules, &directory)?;
        self.extra_files(rules, &directory, &mut accuracy.valid)?;
        let spared = self.context.checker.has(Trait::EmptyAccuracyFailsOpen) && accuracy.shown.is_empty();
        if !closed && !spared {
            accuracy.valid = true;
        }
        self.outcome.errors += u64::from(!accuracy.valid);
        Ok(Some(accuracy))
    }

    fn accuracy_directory(&mut self, rules: &BenchmarkRules, directory: &str) -> Result<Accuracy, Crash> {
        let context = self.context;
        let forms = context.round.submission.accuracy_forms;
        let path = format!("{directory}/accuracy.txt");
        let text = accuracy::text(context, &path)?;
        let judged = if context.checker.has(Trait::OneAccuracyMetric) {
            accuracy::judge_first(rules, forms, &text)?
        } else {
            accuracy::judge(rules, self.scenario, forms, &text)?
        };
        let mut faults = Vec::new();
        if !judged.met {
            faults.push(PathFault::new(
                path.clone(),
                format!("accuracy is not met: {}", judged.listed()),
            ));
        }
        if !judged.hash {
            faults.push(PathFault::new(
                path,
                "there is no hash of the accuracy log".to_owned(),
            ));
        }
        let log = format!("{directory}/mlperf_log_accuracy.json");
        match context.tree.size(&log) {
            None => faults.push(PathFault::new(log, "is missing".to_owned())),
            Some(size) if size > context.round.submission.max_accuracy_log_bytes => {
                faults.push(PathFault::new(log, format!("is not truncated ({size} bytes)")));
            }
            Some(_) => {}
        }
        faults.extend(self.accuracy_log(rules, directory)?);
        let valid = faults.is_empty();
        for fault in faults {
            self.outcome.notes.push(fault.into_note());
        }
        let first = judged
            .metrics
            .iter()
            .find(|(name, _)| rules.accuracy.first().is_some_and(|bound| bound.metric == *name));
        let shown = if context.checker.has(Trait::PlainAccuracy) {
            first.map_or_else(|| "None".to_owned(), |(_, value)| value.clone())
        } else {
            judged.listed()
        };
        Ok(Accuracy { valid, shown })
    }

    /// Returns the errors in the accuracy run's detail log, each with its path.
    fn accuracy_log(&mut self, rules: &BenchmarkRules, directory: &str) -> Result<Vec<PathFault>, Crash> {
        let context = self.context;
        let path = format!("{directory}/mlperf_log_detail.txt");
        let dies = context.checker.has(Trait::CrashesOnAccuracyErrors);
        if !context.tree.exists(&path) {
            let missing = PathFault::new(&path, "is missing");
            return if dies {
                Err(Crash(format!("{path} is missing")))
            } else {
                Ok(vec![missing])
            };
        }
        let log = performance::read(context, directory)?;
        let errors = performance::errors(context, &log);
        if errors > 0 && dies {
            return Err(Crash(format!("{path} reports {errors} errors")));
        }
        let expected = rules
            .dataset_samples
            .filter(|_| context.checker.looks_at(OfficialCheck::DatasetSize));
        let found = log.value("qsl_reported_total_count").and_then(Value::as_u64);
        if let Some(expected) = expected.filter(|&expected| found != Some(expected)) {
            let found = found.map_or_else(|| "no count".to_owned(), |found| found.to_string());
            let fatal = context.checker.fails(OfficialCheck::DatasetSize);
            let text = format!("accuracy samples {found}, the data set has {expected}");
            self.note(&path, text, fatal);
        }
        Ok((errors > 0)
            .then(|| PathFault::new(path, format!("LoadGen reports {errors} errors")))
            .into_iter()
            .collect())
    }

    fn extra_files(
        &mut self,
        rules: &BenchmarkRules,
        directory: &str,
        valid: &mut bool,
    ) -> Result<(), Crash> {
        if !self.context.checker.looks_at(OfficialCheck::ExtraAccuracyFiles) {
            return Ok(());
        }
        for (folder, names) in &rules.extra_accuracy_files {
            let path = format!("{directory}/{folder}");
            let found = self.context.tree.files(&path).unwrap_or_default();
            let stems: Vec<_> = found
                .iter()
                .map(|name| name.split('.').next().unwrap_or(name))
                .collect();
            let missing: Vec<_> = names
                .iter()
                .filter(|name| !stems.contains(&name.as_str()))
                .collect();
            if !missing.is_empty() {
                self.note(
                    &path,
                    format!("{} of the required files are missing", missing.len()),
                    true,
                );
                *valid = false;
            }
        }
        Ok(())
    }
}
