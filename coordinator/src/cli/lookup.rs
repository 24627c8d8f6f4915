//! Finds the device or the run that a user means.

use regatta_types::RunId;

use crate::{
    exit::Failure,
    store::{DeviceRow, RunRow, Store},
};

/// The device that a user means by name or id; the only one there is, when none is named.
pub(super) fn device(store: &Store, given: Option<&str>) -> Result<DeviceRow, Failure> {
    let devices = store.devices()?;
    let known = || {
        devices
            .iter()
            .map(|device| device.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    if devices.is_empty() {
        return Err(Failure::misuse("no device has said hello yet")
            .hint("start `regatta serve` here and `regatta-agent serve` on the device"));
    }
    let mut meant = devices
        .iter()
        .filter(|device| given.is_none_or(|given| device.name == given || device.id.as_str() == given));
    match (meant.next(), meant.next(), given) {
        (Some(device), None, _) => Ok(device.clone()),
        (Some(_), Some(_), Some(given)) => Err(Failure::misuse(format!(
            "more than one device is called `{given}`: name it by its id"
        ))
        .hint("`regatta device list` shows the ids")),
        (Some(_), Some(_), None) => Err(Failure::misuse(format!(
            "which device? name one with --device; known are {}",
            known()
        ))),
        (None, _, given) => Err(Failure::misuse(format!(
            "unknown device `{}`; known are {}",
            given.unwrap_or_default(),
            known()
        ))),
    }
}

/// The run that a user means by its id, or by enough of its beginning or end.
pub(super) fn run(store: &Store, given: &str) -> Result<RunRow, Failure> {
    if let Ok(id) = given.parse::<RunId>()
        && let Some(row) = store.run(id)?
    {
        return Ok(row);
    }
    let mut meant = store.runs()?.into_iter().filter(|row| {
        let id = row.id.to_string();
        given.len() >= 4 && (id.starts_with(given) || id.ends_with(given))
    });
    match (meant.next(), meant.next()) {
        (Some(row), None) => Ok(row),
        (Some(_), Some(_)) => Err(Failure::misuse(format!(
            "more than one run is meant by `{given}`"
        ))),
        (None, _) => Err(Failure::misuse(format!("unknown run `{given}`"))
            .hint("`regatta runs list` shows those that there are")),
    }
}
