//! The built-in drivers of model servers (`configs/servers`), as texts. The engine parses them.

use regatta_types::engine_settings::{EngineSettingError, EngineSettings, Setting};

use crate::packed::Packed;

static SERVERS: Packed = Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/servers")));

/// Returns names and file texts of the drivers, ordered by name.
pub fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    SERVERS
        .files()
        .iter()
        .map(|file| (file.name.as_str(), file.text.as_str()))
}

/// Returns whether a driver's name is the path of a file on the device.
#[must_use]
pub fn is_path(name: &str) -> bool {
    name.contains('/')
}

/// Returns whether LoadGen can use the server of a built-in driver. Of a user's file, only the device knows it.
#[must_use]
pub fn is_for_loadgen(name: &str) -> bool {
    let mut texts = texts();
    let text = texts.find(|(known, _)| *known == name).map(|(_, text)| text);
    text.is_none_or(|text| text.contains("\n[generate]\n") || text.contains(OF_NETWORKS))
}

/// The table of drivers whose servers compute networks.
const OF_NETWORKS: &str = "\n[kserve]\n";

/// Returns whether the server of a built-in driver computes networks. The others generate tokens. `None` of a user's file.
#[must_use]
pub fn computes_networks(name: &str) -> Option<bool> {
    let mut texts = texts();
    let text = texts.find(|(known, _)| *known == name).map(|(_, text)| text);
    text.map(|text| text.contains(OF_NETWORKS))
}

/// Checks that the driver of the settings, if any, is a built-in one or the path of a file, which only the device can read, and that the
/// settings have an effect with it.
///
/// # Errors
/// [`EngineSettingError`] for the first setting that cannot be used.
pub fn check(settings: &EngineSettings) -> Result<(), EngineSettingError> {
    settings.check_server_address()?;
    let Some((server, setting)) = settings.server.as_ref().zip(Setting::named("server")) else {
        return Ok(());
    };
    if !is_path(server) && !texts().any(|(name, _)| name == server) {
        return Err(setting.refuse(server));
    }
    match computes_networks(server) {
        Some(false) => check_without_networks(settings),
        _ => Ok(()),
    }
}

/// Checks the settings of a driver whose server does not compute networks.
///
/// # Errors
/// [`EngineSettingError::Excluded`] for the first setting of a network's repository.
pub fn check_without_networks(settings: &EngineSettings) -> Result<(), EngineSettingError> {
    const OF_REPOSITORY: [&str; 3] = [
        "instance_group_count",
        "preferred_batch_size",
        "max_queue_delay_usec",
    ];
    let mut set = settings.iter().map(|(setting, _)| setting.name);
    set.find(|name| OF_REPOSITORY.contains(name))
        .map_or(Ok(()), |name| {
            Err(EngineSettingError::Excluded {
                name,
                other: "server",
                reason: "only a driver with `kserve`, such as triton, has it",
            })
        })
}
