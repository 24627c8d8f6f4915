//! Tests of the templates of system descriptions (`systems/`). A board's runs get its own, which device and operator override.
//! With their facts, each passes the check of every round.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use regatta_catalogue::known;
use regatta_submission_check::{check, tree::Tree};
use regatta_submission_stage::stage::{Answers, Kind, StageError, Staged};
use regatta_test_support::{
    round,
    staging::{ANSWERS, Parts, StagingFixture},
};
use regatta_types::{Division, Mode};
use serde_json::{Value, json};

const SYSTEM: &str = "tree/open/ACME/systems/Orin.json";
/// The fields that no template has: submitter, status and software.
const NEVER: [&str; 6] = [
    "division",
    "framework",
    "operating_system",
    "other_software_stack",
    "status",
    "submitter",
];

/// Returns answers with only these fields of the system.
fn answers(fixture: &StagingFixture, system: &str) -> Answers {
    let (before, rest) = ANSWERS.split_once("[system.description]").unwrap();
    let (_, after) = rest.split_once("[benchmark.whisper]").unwrap();
    let text = format!("{before}{system}\n[benchmark.whisper]{after}");
    Answers::from_toml(&text, &fixture.at("desk")).unwrap()
}

/// The two runs of an open result, on a device with this module and name.
fn runs(fixture: &StagingFixture, module: Option<&str>, model: &str) -> Vec<PathBuf> {
    let on_the_board = |parts: &mut Parts| {
        parts.evidence["before"]["model"] = model.into();
        if let Some(module) = module {
            parts.evidence["before"]["module"] = module.into();
        }
    };
    vec![
        fixture.run(1, Mode::PerformanceOnly, on_the_board),
        fixture.changed_accuracy_run(2, on_the_board),
    ]
}

fn stage(fixture: &StagingFixture, answers: &Answers, runs: &[PathBuf]) -> Result<Staged, StageError> {
    fixture.stage(Division::Open, Kind::Submission, answers, runs)
}

fn staged_description(fixture: &StagingFixture) -> Value {
    serde_json::from_str(&fs::read_to_string(fixture.at(SYSTEM)).unwrap()).unwrap()
}

/// Returns the files of `systems/`.
fn templates() -> BTreeMap<&'static str, Value> {
    let read = |(name, text)| (name, serde_json::from_str(text).unwrap());
    known::description_texts().map(read).collect()
}

fn fields(template: &Value) -> BTreeMap<&str, &Value> {
    let all = template.as_object().unwrap().iter();
    all.filter(|(name, _)| *name != "_template")
        .map(|(name, value)| (name.as_str(), value))
        .collect()
}

const KIT: (Option<&str>, &str) = (Some("p3701-0005"), "NVIDIA Jetson AGX Orin Developer Kit");
const STATUS: &str = "[system.description]\nstatus = \"available\"\naccelerators_per_node = 1\n\
                      accelerator_model_name = \"Orin\"\naccelerator_memory_capacity = \"shared\"\n";

#[test]
fn a_known_board_fills_its_description_and_the_note_says_with_what() {
    let fixture = StagingFixture::new("v6.1");
    let staged = stage(
        &fixture,
        &answers(&fixture, STATUS),
        &runs(&fixture, KIT.0, KIT.1),
    )
    .unwrap();
    let system = staged_description(&fixture);
    let template = &templates()["agx-orin-devkit-64gb"];
    for field in [
        "cooling",
        "host_networking",
        "host_storage_type",
        "host_processor_model_name",
    ] {
        assert_eq!(system[field], template[field], "{field}");
    }
    assert_eq!(
        system["system_name"], KIT.1,
        "what the device said in its runs wins"
    );
    assert!(system.get("_template").is_none());
    let note = staged
        .notes
        .iter()
        .find(|note| note.contains("from the template agx-orin-devkit-64gb"));
    let note = note.unwrap_or_else(|| panic!("{:?}", staged.notes));
    assert!(
        note.contains("cooling") && !note.contains("system_name"),
        "{note}"
    );
}

#[test]
fn module_does_not_determine_the_carrier_board() {
    let fixture = StagingFixture::new("v6.1");
    let Err(StageError::Refused { findings }) = stage(
        &fixture,
        &answers(&fixture, STATUS),
        &runs(&fixture, KIT.0, "Forge carrier"),
    ) else {
        panic!("nobody said how the carrier is cooled")
    };
    let missing: BTreeSet<_> = findings.iter().map(|finding| finding.what.as_str()).collect();
    assert!(missing.contains("the field cooling is missing"), "{missing:?}");
    assert!(
        !missing.contains("the field host_memory_configuration is missing"),
        "{missing:?}"
    );
}

#[test]
fn doctor_overrules_the_template_and_the_operator_both() {
    let fixture = StagingFixture::new("v6.1");
    let described = json!({ "host_storage_type": "NVMe", "cooling": "doctor's", "host_networking": "" });
    let reported = json!({ "schema": 1, "system_description": described });
    fixture.put("desk/boat-1.json", &reported.to_string());
    let answers = answers(
        &fixture,
        &format!("doctor = \"boat-1.json\"\n{STATUS}cooling = \"a fan\"\n"),
    );
    stage(&fixture, &answers, &runs(&fixture, KIT.0, KIT.1)).unwrap();
    let system = staged_description(&fixture);
    assert_eq!(
        (
            &system["host_storage_type"],
            &system["cooling"],
            &system["host_networking"]
        ),
        (&"NVMe".into(), &"a fan".into(), &"Gig Ethernet".into())
    );
}

#[test]
fn an_unknown_template_is_refused_with_the_known_ones() {
    let fixture = StagingFixture::new("v6.1");
    let answers = answers(&fixture, &format!("template = \"orin\"\n{STATUS}"));
    let Err(StageError::Refused { findings }) = stage(&fixture, &answers, &runs(&fixture, None, "a PC"))
    else {
        panic!("there is no such template")
    };
    let finding = findings
        .iter()
        .find(|finding| finding.place == "answers: system Orin: template");
    let what = &finding.unwrap_or_else(|| panic!("{findings:?}")).what;
    assert!(
        what.contains("no template `orin`") && what.contains("agx-orin-64gb"),
        "{what}"
    );
}

#[test]
fn every_field_of_a_template_has_one_source_and_is_one_of_the_newest_rounds() {
    for (name, template) in templates() {
        let fields: BTreeSet<_> = fields(&template).into_keys().collect();
        let sources = template["_template"]["sources"].as_object().unwrap();
        let named = sources.values().flat_map(|fields| fields.as_array().unwrap());
        let named: Vec<_> = named.map(|field| field.as_str().unwrap()).collect();
        assert_eq!(
            named.len(),
            fields.len(),
            "{name}: a field has two sources, or none"
        );
        assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), fields, "{name}");
        assert!(NEVER.iter().all(|field| !fields.contains(field)), "{name}");
        let newest = round(known::round_names().next_back().unwrap());
        let known = &newest.submission.system_fields;
        let strange = fields
            .iter()
            .find(|field| !known.iter().any(|known| known == *field));
        assert_eq!(strange, None, "{name}");
    }
}

#[test]
fn developer_kit_and_module_have_the_same_module_name() {
    let templates = templates();
    for (kit, module) in [
        ("agx-orin-devkit-64gb", "agx-orin-64gb"),
        ("agx-xavier-devkit-16gb", "agx-xavier-16gb"),
        ("agx-xavier-devkit-32gb", "agx-xavier-32gb"),
        ("orin-nx-16gb-devkit", "orin-nx-16gb"),
    ] {
        let kit = fields(&templates[kit]);
        for (field, value) in fields(&templates[module]) {
            assert!(field == "system_name" || kit[field] == value, "{module}: {field}");
        }
    }
}

/// Returns the findings about the description by the rules of a round.
fn faults(fixture: &StagingFixture, round_name: &str) -> Vec<String> {
    let tree = Tree::scan(&fixture.at("tree")).unwrap();
    let findings = check::strict(&tree, &round(round_name)).findings.into_iter();
    let findings = findings.filter(|finding| finding.path.ends_with("systems/Orin.json"));
    findings
        .map(|finding| format!("{round_name}: {}", finding.message))
        .collect()
}

#[test]
fn completed_templates_pass_every_rounds_check() {
    for (name, template) in templates() {
        let fixture = StagingFixture::new("v6.1");
        let reported = fields(&template);
        let others = fixture.round.submission.system_fields_filled.iter();
        let others = others.filter(|field| !reported.contains_key(field.as_str()));
        let others = others.filter(|field| !["status", "division", "submitter"].contains(&field.as_str()));
        let others: String = others
            .map(|field| format!("{field} = \"known to others\"\n"))
            .collect();
        let system = format!("template = \"{name}\"\n[system.description]\nstatus = \"available\"\n{others}");
        stage(&fixture, &answers(&fixture, &system), &runs(&fixture, None, "")).unwrap();
        let rounds: Vec<_> = known::round_names().collect();
        let all = || {
            rounds
                .iter()
                .flat_map(|round| faults(&fixture, round))
                .collect::<Vec<_>>()
        };
        assert_eq!(all(), Vec::<String>::new(), "{name}");
        // The check reads the description.
        let mut system = staged_description(&fixture);
        system["system_type"] = "a board".into();
        fixture.put(SYSTEM, &system.to_string());
        assert_eq!(all().len(), rounds.len(), "{name}");
    }
}
