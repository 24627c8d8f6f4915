//! Plans the files that describe the measurement of a result.
//!
//! These are `user.conf`, the `mlperf.conf` that LoadGen used, the README, the measurement file and the code.

use std::collections::BTreeMap;

use regatta_catalogue::round::BenchmarkRules;
use regatta_fsutil::regular_file;
use regatta_types::{Division, benchmark::Benchmark};
use serde_json::{Map, Value};

use super::{
    Kind, Question, StageError, StagingFinding, code,
    places::{self, Of},
    run::Run,
    staging::Staging,
    system::{self, NOT_STATED},
    texts,
    tree::Content,
};
use regatta_submission_check::files::sha256;

const USER_CONF: &str = "user.conf";
const MLPERF_CONF: &str = "mlperf.conf";

impl Staging<'_> {
    /// Plans `user.conf`, `mlperf.conf`, README, the measurement file and the code.
    pub(super) fn measurements(
        &mut self,
        of: Of<'_>,
        performance: &Run,
        accuracy: &Run,
    ) -> Result<(), StageError> {
        let answers = self.request.answers;
        let benchmark = &performance.spec.benchmark;
        let stated = answers.benchmark(&benchmark.name);
        let rehearsal = self.request.kind == Kind::Rehearsal;
        let directory = self.places.measurements(of);
        let engine = performance.spec.engine.kind.to_string();
        let implementation = stated.implementation.clone().unwrap_or(engine);
        if !places::is_name(&implementation) {
            let place = format!("answers: benchmark {}", benchmark.name);
            let what = format!("`{implementation}` cannot be a directory's name");
            self.findings.push(StagingFinding::new(
                place,
                what,
                "use letters, digits, `_`, `-` and `.`",
            ));
            return Ok(());
        }
        self.proven(performance, USER_CONF, format!("{directory}/{USER_CONF}"));
        self.mlperf_conf(performance, format!("{directory}/{MLPERF_CONF}"))?;

        let mut readme = texts::readme(of, self.request.round, performance, accuracy, rehearsal);
        if let Some(notes) = &stated.notes {
            let path = answers.path(notes);
            match regular_file::read_text(&path) {
                Ok(notes) => readme.push_str(&format!("\n{notes}")),
                Err(error) => self.unreadable(
                    &format!("answers: benchmark {}: notes", benchmark.name),
                    &path,
                    &error,
                ),
            }
        }
        self.files
            .insert(format!("{directory}/README.md"), Content::Text(readme));

        let fields = self.measurement_fields(benchmark, &stated.fields);
        self.json(self.places.measurement_file(of, &implementation), &fields);
        let place = self.places.code(of.model, &implementation);
        code::plan(self, &benchmark.name, stated.code.as_deref(), &place)
    }

    fn measurement_fields(
        &mut self,
        benchmark: &Benchmark,
        stated: &BTreeMap<String, String>,
    ) -> Map<String, Value> {
        let mut fields: Map<String, Value> = Map::new();
        for (field, value) in stated {
            if !self.request.round.submission.measurement_fields.contains(field) {
                self.notes.push(format!(
                    "answers: benchmark {}: {} has no field {field}; it is written unchanged",
                    benchmark.name, self.request.round.name
                ));
            }
            fields.insert(field.clone(), value.as_str().into());
        }
        for field in &self.request.round.submission.measurement_fields {
            if fields.get(field).is_some_and(system::is_filled) {
                continue;
            }
            if field == "input_data_types" {
                fields.insert(field.clone(), input_type(benchmark).into());
            } else if self.request.kind == Kind::Rehearsal {
                fields.insert(field.clone(), NOT_STATED.into());
            } else {
                self.findings
                    .push(StagingFinding::unanswered(Question::Measurement {
                        benchmark: benchmark.name.clone(),
                        field: field.clone(),
                    }));
            }
        }
        fields
    }

    /// Plans the `mlperf.conf` that the run's LoadGen used.
    ///
    /// It is found by the SHA-256 in the evidence, among the run's files or those that the operator names. It is never rendered.
    fn mlperf_conf(&mut self, run: &Run, place: String) -> Result<(), StageError> {
        let Some(loadgen) = run.loadgen() else {
            // Without a LoadGen, a submission refuses the run, and a rehearsal omits this file.
            return Ok(());
        };
        let expected = &loadgen.mlperf_conf_sha256;
        let own = run.evidence.files.iter().find(|file| file.sha256 == *expected);
        if let Some(file) = own {
            self.proven(run, file.name.as_str(), place);
            return Ok(());
        }
        let answers = self.request.answers;
        for path_stated in &answers.documents.mlperf_confs {
            let path = answers.path(path_stated);
            if path.is_file() && sha256(&path)?.0 == *expected {
                let content = Content::Proven {
                    from: path,
                    sha256: expected.clone(),
                };
                self.files.insert(place, content);
                return Ok(());
            }
        }
        let what = format!(
            "the mlperf.conf of LoadGen {} (revision {}, SHA-256 {expected}) is missing",
            loadgen.version, loadgen.revision
        );
        let fix =
            "name the unmodified file of that revision in `mlperf_confs` under [documents] of the answers";
        match self.request.kind {
            Kind::Submission => self.findings.push(StagingFinding::new(run.called(), what, fix)),
            Kind::Rehearsal => self.notes.push(format!("{}: {what}; {fix}", run.called())),
        }
        Ok(())
    }

    /// Plans the directories beside the accuracy run's logs that some rounds require.
    pub(super) fn accuracy_directories(
        &mut self,
        of: Of<'_>,
        benchmark: &Benchmark,
        rules: Option<&BenchmarkRules>,
    ) -> Result<(), StageError> {
        let stated = self
            .request
            .answers
            .benchmark(&benchmark.name)
            .accuracy_directories;
        let expected = rules
            .into_iter()
            .flat_map(|rules| rules.extra_accuracy_files.keys());
        for name in expected {
            let there = stated.iter().any(|path| path.ends_with(name));
            if !there && self.request.kind == Kind::Submission && self.request.division != Division::Open {
                self.findings.push(StagingFinding::new(
                    format!("answers: benchmark {}", benchmark.name),
                    format!("the directory {name} of the accuracy run is missing"),
                    "name it in `accuracy_directories`",
                ));
            }
        }
        for path_stated in stated {
            let path = self.request.answers.path(&path_stated);
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let place = format!("{}/accuracy/{name}", self.places.results(of));
            code::directory(
                self,
                &format!("answers: benchmark {}", benchmark.name),
                &path,
                &place,
            )?;
        }
        Ok(())
    }
}

/// Returns the data type of the model's input, as published measurements spell it.
const fn input_type(benchmark: &Benchmark) -> &'static str {
    benchmark.model.input_dtype.word()
}
