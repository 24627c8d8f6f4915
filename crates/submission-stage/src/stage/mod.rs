//! Staging: builds the tree of a submission from finished runs and the operator's answers, in the layout of the round.
//!
//! [`stage`] reads run directories and takes the newest valid runs for every result. It writes what the round requires: system
//! descriptions, measurements, logs, audits, `mlperf.conf` and code. Logs are copied and compared with the hashes that the device
//! signed; they are never rendered again. The tree is written completely or not at all. The same runs and answers give the same
//! bytes.
//!
//! Missing information is reported, never invented. Some runs are not measurements: those with Regatta's LoadGen, a simulated
//! device, a simulated power meter or the bundled benchmark. They are refused in every division. [`Kind::Rehearsal`] stages such
//! runs too, in a tree whose names and texts say so. Truncation is a later step ([`crate::truncate`]). The checker decides
//! whether the tree is valid.

mod accelerators;
mod answers;
mod audits;
mod code;
mod error;
mod measurements;
pub mod official;
mod places;
mod planned_audit;
mod power;
mod power_session;
mod request;
mod result;
mod run;
mod select;
mod staging;
mod staging_finding;
mod system;
mod template;
mod texts;
mod tree;

pub use answers::{Answers, BenchmarkAnswers, Documents, SystemAnswers};
pub use error::{AnswersError, StageError};
use places::Places;
use regatta_types::Division;
pub use request::{Kind, Preview, REHEARSAL, Staged, StagedResult, StagingRequest};
use run::Run;
use serde_json::{Map, Value};
use staging::Staging;
pub use staging_finding::{Question, StagingFinding};
use system::{KnownFields, Owner};
use template::Template;
use tree::{Content, Files};

use crate::draft::Draft;

/// The submitter of a rehearsal if the answers name none.
const NOBODY: &str = "nobody";

/// Stages a submission.
///
/// # Errors
/// [`StageError::Refused`] lists everything that is missing or not allowed. The other errors concern files. After an error, no
/// part of the tree remains.
pub fn stage(request: &StagingRequest<'_>) -> Result<Staged, StageError> {
    let draft = Draft::begin(request.output)?;
    let runs = read(request)?;
    let (mut staging, submitter) = planned(request, &runs)?;
    refuse(&mut staging)?;
    tree::write(&staging.files, &draft)?;
    audits::write(&mut staging, draft.root())?;
    refuse(&mut staging)?;
    let Staging { results, notes, .. } = staging;
    Ok(Staged {
        submitter,
        results,
        files: draft.finish()?,
        notes,
    })
}

/// Returns the content and the refusals of a tree that [`stage`] would write, without writing it. The hashes of logs are not compared. A
/// run whose documents cannot be read is a finding, and the others are read.
///
/// # Errors
/// Errors concern files.
pub fn preview(request: &StagingRequest<'_>) -> Result<Preview, StageError> {
    let (mut runs, mut unreadable) = (Vec::new(), Vec::new());
    for directory in request.runs {
        match Run::read(directory, request.keys) {
            Ok(run) => runs.push(run),
            Err(error) => unreadable.push(StagingFinding::unreadable(directory, &error)),
        }
    }
    let (mut staging, _) = planned(request, &runs)?;
    let findings = match refuse(&mut staging) {
        Err(StageError::Refused { findings }) => findings,
        other => {
            other?;
            Vec::new()
        }
    };
    Ok(Preview {
        results: staging.results,
        findings: [unreadable, findings].concat(),
    })
}

fn read(request: &StagingRequest<'_>) -> Result<Vec<Run>, StageError> {
    let directories = request.runs.iter();
    directories
        .map(|directory| Run::read(directory, request.keys))
        .collect()
}

/// Returns the planned tree and the submitter's directory name.
fn planned<'a>(
    request: &'a StagingRequest<'a>,
    runs: &'a [Run],
) -> Result<(Staging<'a>, String), StageError> {
    let mut findings = Vec::new();
    let submitter = submitter(request, &mut findings);
    let mut staging = Staging {
        request,
        places: Places::new(request.round.submission.layout, request.division, &submitter),
        runs,
        power: power_session::read(request.power)?,
        files: Files::new(),
        mapping: request.answers.model_mapping.clone(),
        results: Vec::new(),
        audits: Vec::new(),
        findings,
        notes: Vec::new(),
    };
    plan(&mut staging, &submitter)?;
    Ok((staging, submitter))
}

/// Returns the submitter's directory name.
fn submitter(request: &StagingRequest<'_>, findings: &mut Vec<StagingFinding>) -> String {
    let stated = request.answers.submitter.as_deref();
    if let Some(name) = stated.filter(|name| !places::is_name(name)) {
        let what = format!("`{name}` cannot be a directory's name");
        let fix = "use letters, digits, `_`, `-` and `.`";
        findings.push(StagingFinding::new("answers: submitter", what, fix));
    }
    match (request.kind, stated) {
        (Kind::Rehearsal, name) => format!("{REHEARSAL}{}", name.unwrap_or(NOBODY)),
        (Kind::Submission, Some(name)) => name.to_owned(),
        (Kind::Submission, None) => {
            findings.push(StagingFinding::unanswered(Question::Submitter));
            String::new()
        }
    }
}

/// Plans all files of the tree.
fn plan(staging: &mut Staging<'_>, submitter: &str) -> Result<(), StageError> {
    let StagingRequest { answers, kind, .. } = *staging.request;
    let owner = Owner {
        round: staging.request.round,
        division: staging.request.division,
        submitter,
        kind,
    };
    let mut staged = Vec::new();
    for system in select::choose(staging.runs, staging.request, &mut staging.findings) {
        let name = match kind {
            Kind::Submission => system.name.clone(),
            Kind::Rehearsal => format!("{REHEARSAL}{}", system.name),
        };
        if !places::is_name(&name) {
            staging.findings.push(StagingFinding::new(
                format!("system {name}"),
                "its name cannot be a directory's",
                "give it another one in a [[system]] of the answers: letters, digits, `_`, `-` and `.`",
            ));
            continue;
        }
        let runs: Vec<&Run> = system
            .results
            .values()
            .flat_map(|chosen| std::iter::once(chosen.performance).chain(chosen.accuracy))
            .collect();
        if runs.is_empty() {
            continue;
        }
        let system_answers = answers
            .system
            .iter()
            .find(|system_answers| system_answers.name == system.name);
        let known = KnownFields {
            answers: system_answers,
            doctor: doctor(staging, system_answers),
            template: template(staging, system_answers, &runs),
        };
        let messages = (&mut staging.findings, &mut staging.notes);
        let fields = system::describe(owner, &system.name, known, &runs, messages);
        unknown_fields(staging, system_answers);
        staging.required_scenarios(&system, &fields);
        staging.json(staging.places.system(&name), &fields);
        for ((_, scenario), chosen) in &system.results {
            staging.result(&name, *scenario, *chosen)?;
        }
        staged.extend(runs);
    }
    if staged.is_empty() {
        let fix = "run a benchmark first, in AccuracyOnly and in PerformanceOnly mode";
        staging.findings.push(StagingFinding::new(
            "runs",
            format!("no run of {} can be staged", staging.request.round.name),
            fix,
        ));
    }
    staging.report_unused_sessions();
    if kind == Kind::Rehearsal {
        let text = texts::rehearsal(&staged, staging.request.round);
        staging
            .files
            .insert("REHEARSAL.md".to_owned(), Content::Text(text));
    }
    documents(staging);
    Ok(())
}

/// Returns the system description from the output of `regatta-agent doctor`, if the answers name it.
fn doctor(staging: &mut Staging<'_>, system_answers: Option<&SystemAnswers>) -> Map<String, Value> {
    let Some((system_answers, stated)) =
        system_answers.and_then(|system_answers| Some((system_answers, system_answers.doctor.as_ref()?)))
    else {
        return Map::new();
    };
    system::of_doctor(&staging.request.answers.path(stated)).unwrap_or_else(|error| {
        let fix = "name what `regatta-agent doctor --json` printed on the device";
        let place = format!("answers: system {}: doctor", system_answers.name);
        staging
            .findings
            .push(StagingFinding::new(place, error.to_string(), fix));
        Map::new()
    })
}

/// Returns the template of the system's description. It is the operator's choice, else the one for the device of the last run.
fn template(
    staging: &mut Staging<'_>,
    system_answers: Option<&SystemAnswers>,
    runs: &[&Run],
) -> Option<Template> {
    let last = runs.iter().max_by_key(|run| run.id())?;
    let named = system_answers.and_then(|system_answers| system_answers.template.as_deref());
    template::choose(named, &last.evidence.before).unwrap_or_else(|error| {
        let place = format!(
            "answers: system {}: template",
            system_answers.map_or("", |system_answers| system_answers.name.as_str())
        );
        let fix = "name one of them, or leave it out";
        staging
            .findings
            .push(StagingFinding::new(place, error.to_string(), fix));
        None
    })
}

/// Notes fields that the round does not know, because they are probably misspelt.
fn unknown_fields(staging: &mut Staging<'_>, system_answers: Option<&SystemAnswers>) {
    let submission = &staging.request.round.submission;
    let known = [
        &submission.system_fields,
        &submission.power_fields,
        &submission.network_fields,
    ];
    if let Some(system) = system_answers {
        let fields = system.description.keys();
        for field in fields.filter(|field| !known.iter().any(|list| list.contains(field))) {
            staging.notes.push(format!(
                "answers: system {}: {} has no field {field}; it is written unchanged",
                system.name, staging.request.round.name
            ));
        }
    }
}

/// Plans the documents that the submitter's directory has once.
fn documents(staging: &mut Staging<'_>) {
    let StagingRequest {
        answers,
        kind,
        division,
        round,
        ..
    } = *staging.request;
    let home = staging.places.home.clone();
    let place = format!("{home}/documentation/calibration.md");
    match (&answers.documents.calibration, kind) {
        (Some(path), _) => staging.copy(place, answers.path(path), "answers: documents.calibration"),
        (None, Kind::Rehearsal) => {
            let text = texts::NO_CALIBRATION.to_owned();
            staging.files.insert(place, Content::Text(text));
        }
        (None, Kind::Submission) if division != Division::Open => staging.findings.push(StagingFinding::new(
            "answers: documents",
            "there is no calibration document",
            "set `calibration` to a file that describes calibration and quantization, or states that there is none",
        )),
        (None, Kind::Submission) => {}
    }
    if !staging.mapping.is_empty() && division == Division::Open {
        let mapping = staging.mapping.clone();
        let fields = mapping.into_iter().map(|(own, official)| (own, official.into()));
        staging.json(format!("{home}/model_mapping.json"), &fields.collect());
    }
    if let Some(place) = &round.submission.checker_log {
        let place = format!("{home}/{place}");
        match &answers.documents.checker_log {
            Some(path) => staging.copy(place, answers.path(path), "answers: documents.checker_log"),
            None => staging.notes.push(format!(
                "the layout of {} has a place for the official checker's log: {place}; put its output about the \
                 truncated tree there, or name it as `checker_log` under [documents] of the answers",
                round.name
            )),
        }
    }
}

/// Fails if there are findings. Findings that several results share are listed once.
fn refuse(staging: &mut Staging<'_>) -> Result<(), StageError> {
    let mut findings: Vec<StagingFinding> = Vec::new();
    for finding in std::mem::take(&mut staging.findings) {
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    if findings.is_empty() {
        return Ok(());
    }
    Err(StageError::Refused { findings })
}
