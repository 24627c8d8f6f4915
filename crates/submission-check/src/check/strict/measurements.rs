//! Checks the measurement files of a scenario and the code directory of its benchmark.

use super::{case::Case, system};
use crate::check::{finding::Findings, official::truthy, rules};

/// Checks that the round's measurement files exist and have their fields, and that the code exists.
pub(super) fn check(case: &Case<'_>, findings: &mut Findings) {
    let directory = case.measurements();
    let Some(names) = case.context.tree.files(&directory) else {
        return findings.error(
            rules::MEASUREMENTS,
            &directory,
            "is missing",
            "add the measurement directory",
        );
    };
    for name in &case.context.round.submission.measurement_files {
        // LoadGen reads user.conf; the endpoints harness does not.
        if name == "user.conf" && case.endpoints {
            continue;
        }
        let path = format!("{directory}/{name}");
        match case.context.tree.size(&path) {
            None => findings.error(
                rules::MEASUREMENTS,
                &path,
                "is missing",
                "add the file of this run",
            ),
            Some(0) => findings.error(
                rules::MEASUREMENTS,
                &path,
                "is empty",
                "put the file of this run there",
            ),
            Some(_) => {}
        }
    }
    let name = if case.classic() {
        let mut candidates = names.iter().filter(|name| name.ends_with(".json"));
        candidates
            .find(|name| name.starts_with(case.job.place.system.as_str()))
            .copied()
    } else {
        names
            .contains(&"measurements.json")
            .then_some("measurements.json")
    };
    match name {
        None => {
            let name = if case.classic() {
                format!("{}*.json", case.job.place.system)
            } else {
                "measurements.json".to_owned()
            };
            let path = format!("{directory}/{name}");
            findings.error(rules::MEASUREMENTS, &path, "is missing", "add it");
        }
        Some(name) => fields(case, &format!("{directory}/{name}"), findings),
    }
    code(case, findings);
}

fn fields(case: &Case<'_>, path: &str, findings: &mut Findings) {
    let Some(json) = system::object(case.context, path, rules::MEASUREMENTS, findings) else {
        return;
    };
    for field in &case.context.round.submission.measurement_fields {
        match json.get(field) {
            None => {
                let text = format!("the field {field} is missing");
                findings.error(rules::MEASUREMENTS, path, text, "add it");
            }
            Some(value) if !truthy(value) => {
                let text = format!("the field {field} is empty");
                findings.error(rules::MEASUREMENTS, path, text, "fill it in");
            }
            Some(_) => {}
        }
    }
}

fn code(case: &Case<'_>, findings: &mut Findings) {
    let home = case.job.place.home();
    let path = if case.classic() {
        format!("{home}/code/{}", case.job.place.model)
    } else {
        format!("{home}/src")
    };
    if !case.context.tree.exists(&path) {
        let fix = "add the code, or a README that names its location";
        findings.error(rules::CODE, &path, "is missing", fix);
    }
}
