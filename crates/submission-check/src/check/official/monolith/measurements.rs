//! The monolith's check of a measurement directory and of the code that it names.

use regatta_catalogue::round::{OfficialCheck, Trait};

use super::{
    super::{
        Context, Note, ScenarioPlace, object,
        python::{self, truthy},
    },
    Crash,
};
use crate::tree::Kind;

/// The result of a directory's check, and `weight_data_types` for the CSV.
pub(super) struct Measurements {
    pub(super) good: bool,
    pub(super) weights: String,
}

/// Checks the measurement directory of `place`.
pub(super) fn check(
    context: &Context<'_>,
    place: &ScenarioPlace,
    has_power: bool,
    notes: &mut Vec<Note>,
) -> Result<Measurements, Crash> {
    let directory = place.below("measurements");
    let fatal = context.checker.fails(OfficialCheck::Measurements);
    let mut faults = required_files(context, &directory);
    if has_power && context.checker.looks_at(OfficialCheck::PowerMeasurementFiles) {
        faults.extend(power_files(context, &directory));
    }
    let mut weights = String::from("None");
    match json_name(context, place, &directory) {
        None => faults.push(format!("no {}*.json", place.system)),
        Some((name, implementation)) => {
            let path = format!("{directory}/{name}");
            let json = object::read(context, &path)?;
            if context.checker.has(Trait::WeightDataTypes) && !json.contains_key("weight_data_types") {
                return Err(Crash(format!("{path}: weight_data_types is missing")));
            }
            weights = python::text(json.get("weight_data_types"));
            let filled = !context.round.submission.system_fields_filled.is_empty();
            for field in &context.round.submission.measurement_fields {
                match json.get(field) {
                    None => faults.push(format!("field {field} is missing from {name}")),
                    Some(value) if filled && !truthy(value) => {
                        faults.push(format!("field {field} of {name} is empty"));
                    }
                    Some(_) => {}
                }
            }
            faults.extend(code(context, place, implementation));
        }
    }
    let good = faults.is_empty();
    notes.extend(faults.into_iter().map(|text| Note {
        path: directory.clone(),
        text,
        fatal,
    }));
    Ok(Measurements { good, weights })
}

fn required_files(context: &Context<'_>, directory: &str) -> Vec<String> {
    let empty_counts = context.checker.looks_at(OfficialCheck::EmptyMeasurementFiles);
    let needed = context.round.submission.measurement_files.iter();
    needed
        .filter_map(|name| match context.tree.size(&format!("{directory}/{name}")) {
            None => Some(format!("{name} is missing")),
            Some(0) if empty_counts => Some(format!("{name} is empty")),
            Some(_) => None,
        })
        .collect()
}

/// Name prefixes of power analyzer files.
const POWER_FILES: [&str; 2] = ["analyzer_table", "power_settings"];

/// Returns messages for power analyzer files that are missing, or empty where the checker tests this.
fn power_files(context: &Context<'_>, directory: &str) -> Vec<String> {
    let empty_counts = context.checker.looks_at(OfficialCheck::EmptyMeasurementFiles);
    let anywhere = context.checker.has(Trait::PowerFilesAnywhere);
    let fault = |start| {
        let has_contents = match anywhere {
            true => power_file_anywhere(context, directory, start),
            false => power_file_above(context, directory, start),
        };
        match has_contents {
            None => Some(format!("{start}.* is missing")),
            Some(false) if empty_counts => Some(format!("{start}.* is empty")),
            Some(_) => None,
        }
    };
    POWER_FILES.into_iter().filter_map(fault).collect()
}

/// Returns whether the file in the directory or up to three levels above it is not empty. The outermost file counts.
fn power_file_above(context: &Context<'_>, directory: &str, start: &str) -> Option<bool> {
    let mut levels = vec![directory];
    for _ in 0..3 {
        let above = levels.last().and_then(|level| level.rsplit_once('/'));
        levels.extend(above.map(|(above, _)| above));
    }
    levels.iter().rev().find_map(|level| {
        let names = context.tree.files(level).unwrap_or_default();
        let name = names.into_iter().find(|name| name.starts_with(start))?;
        Some(context.tree.size(&format!("{level}/{name}")) != Some(0))
    })
}

/// Returns whether any such file below the directory three levels above is not empty.
///
/// Hidden directories are skipped, as in Python's `glob`.
fn power_file_anywhere(context: &Context<'_>, directory: &str, start: &str) -> Option<bool> {
    let above = |path: &'_ str| path.rsplit_once('/').map_or(0, |(above, _)| above.len());
    let root = (0..3).fold(directory, |path, _| &path[..above(path)]);
    let start = format!("{start}.");
    let hidden = |path: &str| path[root.len()..].contains("/.");
    let nodes = context.tree.below(root);
    let found = nodes
        .iter()
        .filter(|node| node.name().starts_with(&start) && !hidden(&node.path));
    found
        .map(|node| node.kind != Kind::File || node.size > 0)
        .reduce(|one, other| one || other)
}

/// Returns the measurement file's name and the implementation that it names.
fn json_name<'a>(
    context: &'a Context<'_>,
    place: &ScenarioPlace,
    directory: &str,
) -> Option<(&'a str, &'a str)> {
    let ending = format!("_{}.json", place.scenario);
    let names = context.tree.files(directory)?;
    let name = names
        .into_iter()
        .find(|name| name.starts_with(&place.system) && name.ends_with(".json"))?;
    let cut = if name.ends_with(&ending) {
        ending.len()
    } else {
        ".json".len()
    };
    let implementation = name
        .get(place.system.len() + 1..name.len() - cut)
        .unwrap_or_default();
    Some((name, implementation))
}

/// Checks the code of the model: `code/<model>/<implementation>` or `code/<model>`. The latter may be a file that names another
/// directory.
fn code(context: &Context<'_>, place: &ScenarioPlace, implementation: &str) -> Option<String> {
    let code = format!("{}/code", place.home());
    let own = format!("{code}/{}", place.model);
    let base = if context.tree.is_file(&own) {
        let text = context.tree.read(&own, 1 << 16).unwrap_or_default();
        format!("{code}/{}", String::from_utf8_lossy(&text).trim())
    } else {
        own
    };
    let there = context.tree.exists(&format!("{base}/{implementation}")) || context.tree.exists(&base);
    (!there).then(|| format!("no code directory {base}"))
}
