//! The system description: the template of a known board, overruled by what the device told of itself in its runs and through its
//! doctor, overruled by what the operator says. Nothing is made up: a field that none of them fills is asked for, and a rehearsal
//! says in it that it was not stated.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::Path,
};

use regatta_config::round::Round;
use regatta_fsutil::regular_file::{self, LARGEST_TEXT};
use regatta_types::{Division, documents::DeviceFacts};
use serde_json::{Map, Value};

use super::{Kind, Question, StagingFinding, SystemAnswers, accelerators, run::Run, template::Template};

/// What a rehearsal writes where nobody answered.
pub(super) const NOT_STATED: &str = "not stated (rehearsal)";
/// Fields that every checker judges by their value, whatever else a round lets stay empty.
const ALWAYS: [&str; 3] = ["status", "system_type", "system_name"];
/// Fields that say whose and where the system is: they are not answered here.
const OWN: [&str; 2] = ["division", "submitter"];
/// Bytes of a GiB.
const GIB: f64 = 1_073_741_824.0;

/// Who submits the system where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) round: &'a Round,
    pub(super) division: Division,
    pub(super) submitter: &'a str,
    pub(super) kind: Kind,
}

/// What is known of a system beside its runs.
#[derive(Debug)]
pub(super) struct KnownFields<'a> {
    /// What the operator says.
    pub(super) answers: Option<&'a SystemAnswers>,
    /// What the device's doctor drafted.
    pub(super) doctor: Map<String, Value>,
    /// What the table of known boards has.
    pub(super) template: Option<Template>,
}

/// The fields of the description. What is missing goes to `findings`, which fields come from the template to `notes`.
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
        // What JSON has no value for stays empty and is asked for.
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
        mark(&mut fields, runs);
    }
    fields.into_iter().collect()
}

/// Takes the round's fields that nobody else filled from the template, and says which.
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

/// The `system_description` in what `regatta-agent doctor --json` printed; the error is a sentence.
pub(super) fn of_doctor(path: &Path) -> Result<Map<String, Value>, String> {
    let bytes = regular_file::read(path, LARGEST_TEXT)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let document = serde_json::from_slice::<Value>(&bytes);
    let mut document = document.map_err(|error| format!("{} does not read: {error}", path.display()))?;
    match document.get_mut("system_description").map(Value::take) {
        Some(Value::Object(fields)) => Ok(fields),
        _ => Err(format!("{} holds no system_description", path.display())),
    }
}

/// What the runs' own records tell of the system.
fn fields_of(runs: &[&Run]) -> BTreeMap<String, Value> {
    let mut fields = BTreeMap::new();
    // Ids sort by time: the last run knows the system as it was last.
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
    // Elsewhere a processor that the system counts may be half a core.
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

/// Memory, as much of it as the system leaves to programs.
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

/// What a rehearsal writes into a field that must hold one of a few values, and into any other.
fn stand_in(field: &str) -> &'static str {
    match field {
        "status" => "rdi",
        "system_type" => "edge",
        "number_of_nodes" | "accelerators_per_node" => "1",
        _ => NOT_STATED,
    }
}

/// Says in the fields that become columns of the results that they are none.
fn mark(fields: &mut BTreeMap<String, Value>, runs: &[&Run]) {
    let text = |field: &str, fields: &BTreeMap<String, Value>| {
        let value = fields.get(field).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let name = match text("system_name", fields).as_str() {
        NOT_STATED => "REHEARSAL".to_owned(),
        stated => format!("REHEARSAL: {stated}"),
    };
    fields.insert("system_name".to_owned(), name.into());
    let mut reasons: Vec<String> = runs.iter().flat_map(|run| run.not_submittable()).collect();
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

/// Whether the official checkers take a value for an answer: nothing empty, and no number 0.
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
