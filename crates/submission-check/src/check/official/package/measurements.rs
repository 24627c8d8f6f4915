//! The package's four checks of measurements, which fail independently.

use super::{
    super::{
        Context, ScenarioPlace,
        crash::Crash,
        object,
        path_fault::PathFault,
        python::{self, truthy},
    },
    Faults,
    loaded::Loaded,
    raised,
};

/// Returns the path of the measurement JSON. The error is the reason why the official program ends while it searches for it.
pub(super) fn path(context: &Context<'_>, place: &ScenarioPlace, classic: bool) -> Result<String, Crash> {
    if !classic {
        return Ok(format!("{}/measurements.json", place.below("results")));
    }
    let directory = place.below("measurements");
    let names = context
        .tree
        .files(&directory)
        .ok_or_else(|| Crash(format!("{directory} is not a directory")))?;
    let name = names
        .into_iter()
        .find(|name| name.starts_with(&place.system) && name.ends_with(".json"));
    Ok(format!("{directory}/{}", name.unwrap_or("None")))
}

/// Checks the measurements and returns `weight_data_types` for the CSV.
pub(super) fn check(context: &Context<'_>, loaded: &Loaded<'_>, faults: &mut Faults) -> String {
    let rules = &context.round.submission;
    let path = &loaded.measurements_path;
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let sources = match rules.layout {
        regatta_catalogue::round::Layout::Classic => "code",
        regatta_catalogue::round::Layout::ResultsOnly => "src",
    };
    let sources = format!("{}/{sources}", loaded.job.place.home());
    if !context.tree.exists(&sources) {
        faults.push(PathFault::new(sources, "is missing".to_owned()));
    }
    for name in &rules.measurement_files {
        if name == "user.conf" && loaded.endpoints.is_some() {
            continue;
        }
        let file = format!("{directory}/{name}");
        match context.tree.size(&file) {
            None => faults.push(PathFault::new(file, "is missing".to_owned())),
            Some(0) => faults.push(PathFault::new(file, "is empty".to_owned())),
            Some(_) => {}
        }
    }
    if !context.tree.exists(path) {
        faults.push(PathFault::new(path.clone(), "is missing".to_owned()));
        return String::new();
    }
    match object::read(context, path) {
        Err(error) => {
            faults.push(raised(path, error));
            String::new()
        }
        Ok(json) => {
            for field in &rules.measurement_fields {
                match json.get(field) {
                    None => faults.push(PathFault::new(path.clone(), format!("field {field} is missing"))),
                    Some(value) if !truthy(value) => {
                        faults.push(PathFault::new(path.clone(), format!("field {field} is empty")));
                    }
                    Some(_) => {}
                }
            }
            python::text(json.get("weight_data_types"))
        }
    }
}
