//! Finds the devices and runs that a user names, for the command line and the live page alike. It knows ids, names, labels and [`RunFilter`];
//! [`crate::comparisons`] has the longer grammar of selections.

mod run_filter;
mod run_origin;

use std::collections::{BTreeMap, BTreeSet};

use regatta_types::{DeviceId, RunId};

pub use self::{
    run_filter::{InvalidTime, RunDevices, RunFilter, since},
    run_origin::{CampaignRuns, EngineSetting, MissingValue, campaign_runs},
};

use crate::wording::run_text;
use regatta_lab_store::{DeviceLabel, DeviceRow, RunRow, Store, lab_error::LabError};

/// Returns the device with a name or id. Without one, returns the only device.
pub fn device(store: &Store, name_or_id: Option<&str>) -> Result<DeviceRow, LabError> {
    if let Some(id) = name_or_id.and_then(|word| word.parse::<DeviceId>().ok())
        && let Some(row) = store.devices().get(&id)?
        && store
            .members()
            .get(&id)?
            .is_none_or(|member| member.removed.is_none())
    {
        return Ok(row);
    }
    let devices = store.devices().all()?;
    let known = || {
        let names: BTreeSet<&str> = devices.iter().map(|device| device.name.as_str()).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    };
    if devices.is_empty() {
        return Err(LabError::misuse("no device has connected yet")
            .hint("start `regatta serve` here and `regatta-agent serve` on the device"));
    }
    let mut meant = devices.iter().filter(|device| {
        name_or_id
            .is_none_or(|name_or_id| device.name == name_or_id || is_id_or_beginning(&device.id, name_or_id))
    });
    match (meant.next(), meant.next(), name_or_id) {
        (Some(device), None, _) => Ok(device.clone()),
        (Some(_), Some(_), Some(name_or_id)) => Err(LabError::misuse(format!(
            "more than one device is called `{name_or_id}`: name it by its id"
        ))
        .hint("`regatta device list` shows the ids")),
        (Some(_), Some(_), None) => Err(LabError::misuse(format!(
            "which device? name one with --device; known are {}",
            known()
        ))),
        (None, _, name_or_id) => Err(LabError::misuse(format!(
            "unknown device `{}`; known are {}",
            name_or_id.unwrap_or_default(),
            known()
        ))),
    }
}

/// Returns whether a word is a device's id, or a beginning of it that is as long as in lists.
pub fn is_id_or_beginning(id: &DeviceId, word: &str) -> bool {
    word.len() >= 8 && id.as_str().starts_with(word)
}

/// The name of every device.
pub const ALL: &str = "all";

/// Adds a device that is not there yet.
pub fn add(found: &mut Vec<DeviceRow>, row: DeviceRow) {
    if found.iter().all(|known| known.id != row.id) {
        found.push(row);
    }
}

/// Returns the devices with these names or ids, each once. `all` names every device.
pub fn devices(store: &Store, names: &[String]) -> Result<Vec<DeviceRow>, LabError> {
    let mut found: Vec<DeviceRow> = Vec::new();
    for name in names {
        let named = match store.devices().all()? {
            all if name == ALL && !all.is_empty() => all,
            _ => vec![device(store, Some(name))?],
        };
        named.into_iter().for_each(|row| add(&mut found, row));
    }
    Ok(found)
}

/// Returns the devices that have one of these labels, each once. A label of no device is an error.
pub fn labelled_devices(store: &Store, labels: &[String]) -> Result<Vec<DeviceRow>, LabError> {
    if labels.is_empty() {
        return Ok(Vec::new());
    }
    let devices = store.devices().all()?;
    let mut known: LabelledDevices = BTreeMap::new();
    for row in &devices {
        for label in &row.labels {
            known.entry(label.clone()).or_default().insert(row.id.clone());
        }
    }
    let mut found = Vec::new();
    for label in labels {
        let meant = devices_of(label, &known)?;
        for row in devices.iter().filter(|row| meant.contains(&row.id)) {
            add(&mut found, row.clone());
        }
    }
    Ok(found)
}

/// The devices of each label.
pub type LabelledDevices = BTreeMap<DeviceLabel, BTreeSet<DeviceId>>;

/// Returns the devices with a label. A label of no device is an error.
pub fn devices_of<'a>(word: &str, known: &'a LabelledDevices) -> Result<&'a BTreeSet<DeviceId>, LabError> {
    let label: DeviceLabel = word.parse().map_err(LabError::usage)?;
    known.get(&label).ok_or_else(|| {
        let labels: Vec<String> = known.keys().map(ToString::to_string).collect();
        if labels.is_empty() {
            return LabError::misuse(format!("no device has the label `{label}`, or any other label"))
                .hint(format!("`regatta device label NAME +{label}` gives it to one"));
        }
        LabError::misuse(format!(
            "no device has the label `{label}`; known are {}",
            labels.join(", ")
        ))
    })
}

/// The name of the run that was requested last.
const LAST: &str = "last";

/// Returns the run with an id, with a unique beginning or end of it, or the last one by the name `last`.
pub fn run(store: &Store, name: &str) -> Result<RunRow, LabError> {
    if let Ok(id) = name.parse::<RunId>()
        && let Some(row) = store.runs().get(id)?
    {
        return Ok(row);
    }
    if name == LAST {
        return store
            .runs()
            .newest()?
            .ok_or_else(|| LabError::misuse("there is no run yet").hint("request one with `regatta run`"));
    }
    let mut meant = store.runs().all()?;
    meant.retain(|row| {
        let id = row.id.to_string();
        name.len() >= 4 && (id.starts_with(name) || id.ends_with(name))
    });
    match meant.as_slice() {
        [row] => Ok(row.clone()),
        [_, _, ..] => Err(ambiguous(name, &meant)),
        [] => Err(LabError::misuse(format!("unknown run `{name}`"))
            .hint("`regatta runs list` shows the newest; `last` names the last one")),
    }
}

/// Returns the error for a part of several runs' ids, with the newest of them.
fn ambiguous(name: &str, meant: &[RunRow]) -> LabError {
    /// The runs that are named.
    const SHOWN: usize = 5;
    let count = meant.len();
    let newest = meant.iter().take(SHOWN);
    let shown = newest.map(|row| format!("{}  {}", row.id, run_text::subject(row)));
    let mut lines = vec!["ids share their first characters; abbreviate from the end:".to_owned()];
    lines.extend(shown);
    if count > SHOWN {
        lines.push(format!("and {} older runs", count - SHOWN));
    }
    LabError::misuse(format!("`{name}` is part of the ids of {count} runs")).hint(lines.join("\n"))
}

/// Returns the runs with these names, each once, in their order.
pub fn runs(store: &Store, names: &[String]) -> Result<Vec<RunRow>, LabError> {
    let mut found: Vec<RunRow> = Vec::with_capacity(names.len());
    for name in names {
        let row = run(store, name)?;
        if found.iter().all(|known| known.id != row.id) {
            found.push(row);
        }
    }
    Ok(found)
}

/// Returns the devices with these names or ids. Removed devices are known too, because their runs are kept.
pub fn any_devices(store: &Store, names: &[String]) -> Result<BTreeSet<DeviceId>, LabError> {
    let known = store.devices().names()?;
    let mut devices = BTreeSet::new();
    for requested in names {
        let found = known
            .iter()
            .filter(|(id, name)| is_id_or_beginning(id, requested) || *name == requested);
        let before = devices.len();
        devices.extend(found.map(|(id, _)| id.clone()));
        if devices.len() == before {
            // Removed devices may have the names of present ones.
            let names: BTreeSet<&str> = known.values().map(String::as_str).collect();
            let names: Vec<&str> = names.into_iter().collect();
            return Err(LabError::misuse(format!(
                "unknown device `{requested}`; known are {}",
                names.join(", ")
            )));
        }
    }
    Ok(devices)
}

#[cfg(test)]
mod tests {
    use regatta_wire::message::Hello;

    use super::*;

    #[test]
    fn names_that_several_devices_had_are_listed_once() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("db")).unwrap();
        for (seed, name) in [(1, "boat-3"), (2, "boat-3"), (3, "boat-1")] {
            let public_key = [seed; 32];
            let hello = Hello {
                device: DeviceId::of_public_key(&public_key),
                name: name.to_owned(),
                public_key,
                online: true,
                agent: "0.1.0".to_owned(),
                engines: Vec::new(),
                facts_json: b"{}".to_vec(),
                runs: Vec::new(),
            };
            store.devices().record_hello(&hello).unwrap();
        }
        let unknown = any_devices(&store, &["nosuch".to_owned()]).unwrap_err();
        assert_eq!(
            unknown.sentence(),
            "unknown device `nosuch`; known are boat-1, boat-3"
        );
    }
}
