//! Builds the system description.
//!
//! The device's records and the output of its doctor override the template of a known board. The operator's answers override
//! both. Nothing is invented: an empty required field becomes a question, and a rehearsal marks it as not stated.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    io,
    path::{Path, PathBuf},
};

use regatta_catalogue::round::Round;
use regatta_fsutil::regular_file::{self, MAX_TEXT};
use regatta_types::{Division, documents::DeviceFacts};
use serde_json::{Map, Value};

use super::{Kind, Question, StagingFinding, SystemAnswers, accelerators, run::Run, template::Template};

/// The value that a rehearsal writes into fields without an answer.
pub(super) const NOT_STATED: &str = "not stated (rehearsal)";
/// Fields that every checker compares with allowed values, even if a round lets other fields be empty.
const ALWAYS: [&str; 3] = ["status", "system_type", "system_name"];
/// Fields that staging sets itself, from the submitter and the division.
const OWN: [&str; 2] = ["division", "submitter"];
/// The number of bytes in a GiB.
const GIB: f64 = 1_073_741_824.0;

/// The submitter, round and division of a system.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) round: &'a Round,
    pub(super) division: Division,
    pub(super) submitter: &'a str,
    pub(super) kind: Kind,
}

/// Sources of description fields other than the runs.
#[derive(Debug)]
pub(super) struct KnownFields<'a> {
    /// The operator's answers.
    pub(super) answers: Option<&'a SystemAnswers>,
    /// The description that the device's doctor drafted.
    pub(super) doctor: Map<String, Value>,
    /// The template of a known board.
    pub(super) template: Option<Template>,
}

/// Returns the fields of the description. Adds missing fields to `findings`, and the fields taken from the template to `notes`.
pub(super) fn describe(
    owner: Owner<'_>,
    name: &str,
    known: KnownFields<'_>,
    runs: &[&Run],
    (findings, notes): (&mut Vec<StagingFinding>, &mut Vec<String>),
) -> Map<String, Value> {
    let submission = &owner.round.submission;
    let mut fields = fields_of(runs);
    fields.extend(known.doctor.into_iter().filter(|(_, value)| is_filled(value)));
    for (field, value) in known.answers.into_iter().flat_map(|answers| &answers.description) {
        // A TOML value without a JSON equivalent becomes null and is then reported as missing.
        fields.insert(field.clone(), serde_json::to_value(value).unwrap_or_default());
    }
    if let Some(template) = known.template {
        notes.extend(fill(name, template, &submission.system_fields, &mut fields));
    }
    fields.insert("division".to_owned(), owner.division.to_string().into());
    fields.insert("submitter".to_owned(), owner.submitter.into());
    let network = (owner.division == Division::Network).then_some(&submission.network_fields);
    if network.is_some() {
        fields.insert("is_network".to_owned(), "true".into());
    }
    let required = submission
        .system_fields
        .iter()
        .filter(|field| !OWN.contains(&field.as_str()));
    for field in required.chain(network.into_iter().flatten()) {
        let needed = submission.system_fields_filled.contains(field)
            || submission.network_fields.contains(field)
            || ALWAYS.contains(&field.as_str());
        let filled = fields.get(field).is_some_and(is_filled);
        if needed && !filled && owner.kind == Kind::Submission {
            findings.push(StagingFinding::unanswered(Question::System {
                system: name.to_owned(),
                field: field.clone(),
            }));
        } else if needed && !filled {
            fields.insert(field.clone(), stand_in(field).into());
        } else {
            fields.entry(field.clone()).or_insert_with(|| "".into());
        }
    }
    if owner.kind == Kind::Rehearsal {
        mark(&mut fields, runs, owner.round);
    }
    fields.into_iter().collect()
}

/// Fills the round's empty fields from the template, and returns a note that lists them.
fn fill(
    system: &str,
    template: Template,
    known: &[String],
    fields: &mut BTreeMap<String, Value>,
) -> Option<String> {
    let mut taken = Vec::new();
    for (field, value) in template
        .fields
        .into_iter()
        .filter(|(field, _)| known.contains(field))
    {
        if let Entry::Vacant(vacant) = fields.entry(field) {
            taken.push(vacant.key().clone());
            vacant.insert(value);
        }
    }
    (!taken.is_empty()).then(|| {
        format!(
            "system {system}: from the template {}: {}; set a field under [system.description] of the answers where the system \
             differs",
            template.name,
            taken.join(", ")
        )
    })
}

/// Why the output of `regatta-agent doctor --json` cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum DoctorOutputError {
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} cannot be parsed: {source}", path.display())]
    NotJson {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("{} has no system_description", path.display())]
    NoDescription { path: PathBuf },
}

/// Reads `system_description` from the output of `regatta-agent doctor --json`.
pub(super) fn of_doctor(path: &Path) -> Result<Map<String, Value>, DoctorOutputError> {
    let path = || path.to_owned();
    let bytes = regular_file::read(&path(), MAX_TEXT)
        .map_err(|source| DoctorOutputError::Unreadable { path: path(), source })?;
    let document = serde_json::from_slice::<Value>(&bytes);
    let mut document = document.map_err(|source| DoctorOutputError::NotJson { path: path(), source })?;
    match document.get_mut("system_description").map(Value::take) {
        Some(Value::Object(fields)) => Ok(fields),
        _ => Err(DoctorOutputError::NoDescription { path: path() }),
    }
}

/// Returns the fields that the runs' own records determine.
fn fields_of(runs: &[&Run]) -> BTreeMap<String, Value> {
    let mut fields = BTreeMap::new();
    // Ids sort by time, so the last run has the latest state of the system.
    let Some(run) = runs.iter().max_by_key(|run| run.id()) else {
        return fields;
    };
    let mut tell = |field: &str, value: Value| {
        if is_filled(&value) {
            fields.insert(field.to_owned(), value);
        }
    };
    let facts = &run.evidence.before;
    tell("number_of_nodes", 1.into());
    tell("system_name", facts.model.trim().into());
    tell("operating_system", operating_system(facts).into());
    if facts.memory_bytes > 0 {
        tell("host_memory_capacity", gib(facts.memory_bytes).into());
    }
    // On other architectures, a processor that the operating system counts may be a hardware thread.
    if facts.arch == "aarch64" && facts.cpus > 0 {
        tell("host_processor_core_count", facts.cpus.into());
    }
    if let Some(attempt) = run.attempt() {
        tell("framework", attempt.engine.as_str().into());
        let loadgen = attempt.loadgen.as_ref();
        let loadgen = loadgen.map(|loadgen| {
            format!(
                ", {} {} ({})",
                loadgen.implementation, loadgen.version, loadgen.revision
            )
        });
        let stack = format!("{}{}", run.evidence.agent, loadgen.unwrap_or_default());
        tell("other_software_stack", stack.into());
    }
    for (field, value) in accelerators::fields_of(runs) {
        tell(field, value);
    }
    fields
}

/// Formats the memory that is available to programs.
pub(super) fn gib(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "given with one decimal")]
    let gib = bytes as f64 / GIB;
    format!("{gib:.1} GiB usable")
}

fn operating_system(facts: &DeviceFacts) -> String {
    match (facts.os.trim(), facts.kernel.trim()) {
        ("", "") => String::new(),
        (os, "") => os.to_owned(),
        ("", kernel) => format!("kernel {kernel}"),
        (os, kernel) => format!("{os}, kernel {kernel}"),
    }
}

/// Returns the value that a rehearsal writes into an empty field. Some fields only allow certain values.
fn stand_in(field: &str) -> &'static str {
    match field {
        "status" => "rdi",
        "system_type" => "edge",
        "number_of_nodes" | "accelerators_per_node" => "1",
        _ => NOT_STATED,
    }
}

/// Marks the fields that become columns of the results as a rehearsal.
fn mark(fields: &mut BTreeMap<String, Value>, runs: &[&Run], round: &Round) {
    let text = |field: &str, fields: &BTreeMap<String, Value>| {
        let value = fields.get(field).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let name = match text("system_name", fields).as_str() {
        NOT_STATED => "REHEARSAL".to_owned(),
        stated => format!("REHEARSAL: {stated}"),
    };
    fields.insert("system_name".to_owned(), name.into());
    let mut reasons: Vec<String> = runs.iter().flat_map(|run| run.not_submittable(round)).collect();
    reasons.sort();
    reasons.dedup();
    let why = if reasons.is_empty() {
        String::new()
    } else {
        format!(" ({})", reasons.join("; "))
    };
    let notes = format!(
        "REHEARSAL, not a result and not to be submitted{why}. {}",
        text("hw_notes", fields)
    );
    fields.insert("hw_notes".to_owned(), notes.trim_end().into());
}

/// Returns whether the official checkers accept a value as filled: it is not empty and not the number 0.
pub(super) fn is_filled(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}
