//! Devices, as they described themselves in their last hello.

use std::collections::BTreeMap;

use regatta_types::{
    DeviceId, RunId,
    documents::{DeviceFacts, EngineKind},
};
use regatta_wire::message::{BoardReadings, Hello};
use serde::Serialize;

use super::{DeviceLabel, HealthRow, Result, Store, health::health, now, values};
use crate::database::{Row, params};

/// The longest interval of heartbeats that an agent's configuration allows.
const MAX_HEARTBEAT_MS: u64 = 60_000;
/// The shortest silence that is reported, for any interval of heartbeats.
const MIN_SILENCE_S: u64 = 10;

/// One device.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceRow {
    /// The device's id.
    pub id: DeviceId,
    /// The device's name.
    pub name: String,
    /// Its Ed25519 public key.
    pub public_key: [u8; 32],
    /// The agent's version.
    pub agent: String,
    /// The engines that it can run.
    pub engines: Vec<EngineKind>,
    /// `DeviceFacts` as JSON, as the device sent it.
    pub facts: String,
    pub online: bool,
    /// Whether two agents use its identity. Messages of both are rejected then.
    pub duplicated: bool,
    /// The run in whose timed window it was at its last heartbeat.
    pub running: Option<RunId>,
    /// The first of its runs that was begun and is not recorded.
    pub open_run: Option<RunId>,
    /// The readings of its sensors at its last heartbeat.
    pub readings: BoardReadings,
    /// The number of hellos received.
    pub hellos: u64,
    pub health: HealthRow,
    /// Its labels, in alphabetical order.
    pub labels: Vec<DeviceLabel>,
    /// The time of its first hello.
    pub first_seen: String,
    /// The time of its last message.
    pub last_seen: String,
}

/// The activity of a device, according to its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceActivity {
    /// The device has no run.
    Idle,
    /// The device has a run that is not recorded yet.
    Busy,
    /// The coordinator receives nothing from it.
    Offline,
    /// Two agents use its identity.
    Duplicated,
}

impl DeviceActivity {
    /// Every activity.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Busy, Self::Offline, Self::Duplicated];

    /// Returns the word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Offline => "offline",
            Self::Duplicated => "duplicated",
            Self::Busy => "busy",
            Self::Idle => "idle",
        }
    }
}

impl DeviceRow {
    /// Returns the device's activity.
    pub const fn activity(&self) -> DeviceActivity {
        match self {
            Self { duplicated: true, .. } => DeviceActivity::Duplicated,
            Self { online: false, .. } => DeviceActivity::Offline,
            Self {
                open_run: Some(_), ..
            } => DeviceActivity::Busy,
            _ => DeviceActivity::Idle,
        }
    }

    /// Returns the temperature of its hottest zone in thousandths of a degree Celsius: of its last heartbeat, or of the last hello of an
    /// agent whose heartbeats have none.
    pub fn hottest_millicelsius(&self, facts: Option<&DeviceFacts>) -> Option<i64> {
        let of_heartbeat = self.readings.hottest_millicelsius;
        of_heartbeat.or_else(|| facts?.hottest_millicelsius)
    }

    /// Returns the seconds without a message after which the device is silent: three of its agent's heartbeats, at least ten
    /// seconds. Agents that declare none may use the longest interval.
    pub fn silent_after_s(&self) -> i64 {
        let declared = self.reported_facts().ok().and_then(|facts| facts.heartbeat_ms);
        let interval = declared.unwrap_or(MAX_HEARTBEAT_MS).min(MAX_HEARTBEAT_MS);
        let seconds = (3 * interval).div_ceil(1_000).max(MIN_SILENCE_S);
        i64::try_from(seconds).unwrap_or(i64::MAX)
    }

    /// Parses the device's own description.
    ///
    /// # Errors
    /// Returns an error when an agent of another version uses another format.
    pub fn reported_facts(&self) -> serde_json::Result<DeviceFacts> {
        serde_json::from_str(&self.facts)
    }
}

/// Selects every column that [`device`] reads.
const SELECT_DEVICES: &str = "SELECT devices.*, presence.*, device_health.*, (SELECT runs.id FROM runs WHERE runs.device = devices.id
     AND recorded IS NULL AND known = 1 AND lost = 0 ORDER BY runs.id LIMIT 1) AS open_run,
     (SELECT string_agg(label, ' ' ORDER BY label) FROM device_labels WHERE device = devices.id) AS labels
     FROM devices JOIN presence ON presence.device = devices.id LEFT JOIN device_health ON device_health.device = devices.id";

fn device(row: &Row<'_>) -> Result<DeviceRow> {
    Ok(DeviceRow {
        id: values::parsed(row, "id")?,
        name: row.get("name")?,
        public_key: row.get("public_key")?,
        agent: row.get("agent")?,
        engines: values::json(row, "engines")?,
        facts: row.get("facts")?,
        online: row.get("online")?,
        duplicated: row.get("duplicated")?,
        running: values::optional_parsed(row, "running")?,
        open_run: values::optional_parsed(row, "open_run")?,
        health: health(row)?,
        labels: DeviceLabel::list(row.get("labels")?),
        readings: BoardReadings {
            hottest_millicelsius: row.get("hottest_millicelsius")?,
            milliwatts: values::optional_unsigned(row, "milliwatts")?,
        },
        hellos: values::unsigned(row, "hellos")?,
        first_seen: row.get("first_seen")?,
        last_seen: row.get("last_seen")?,
    })
}

/// The devices and their descriptions of themselves.
#[derive(Debug)]
pub struct Devices<'a> {
    pub(super) store: &'a Store,
}

impl Devices<'_> {
    /// Stores a device's hello.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn record_hello(&self, hello: &Hello) -> Result<()> {
        // A list of words always serializes.
        let engines = serde_json::to_string(&hello.engines).unwrap_or_else(|_| "[]".to_owned());
        let now = now();
        self.store.all_or_nothing(|store| {
            store.execute(
                "INSERT INTO devices (id, name, public_key, agent, engines, facts, hellos, first_seen)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7) ON CONFLICT (id) DO UPDATE
                     SET name = ?2, agent = ?4, engines = ?5, facts = ?6, hellos = devices.hellos + 1",
                params![
                    hello.device.as_str(),
                    hello.name,
                    hello.public_key,
                    hello.agent,
                    engines,
                    String::from_utf8_lossy(&hello.facts_json),
                    now
                ],
            )?;
            store.execute(
                "INSERT INTO presence (device, online, last_seen) VALUES (?1, ?2, ?3)
                     ON CONFLICT (device) DO UPDATE SET online = ?2, last_seen = ?3, running = NULL",
                params![hello.device.as_str(), hello.online, now],
            )?;
            Ok(())
        })
    }

    /// Marks a device as offline after its last will. The broker sends the last will, so it is not a sign of life.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn mark_offline(&self, id: &DeviceId) -> Result<()> {
        self.store.execute(
            "UPDATE presence SET online = 0 WHERE device = ?1",
            params![id.as_str()],
        )?;
        Ok(())
    }

    /// Stores a heartbeat with the readings of the device's sensors. The device is online even if its hello was lost, and is in the timed
    /// window of `running`, if any.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn record_heartbeat(
        &self,
        id: &DeviceId,
        running: Option<RunId>,
        readings: BoardReadings,
    ) -> Result<()> {
        self.store.execute(
            "UPDATE presence SET last_seen = ?2, running = ?3, online = 1 - duplicated, hottest_millicelsius = ?4, milliwatts = ?5
             WHERE device = ?1",
            params![
                id.as_str(),
                now(),
                running.map(|run| run.to_string()),
                readings.hottest_millicelsius,
                readings.milliwatts.map(values::signed)
            ],
        )?;
        Ok(())
    }

    /// Stores whether two agents use a device's identity. While they do, the device is offline.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn set_duplicated(&self, id: &DeviceId, duplicated: bool) -> Result<()> {
        self.store.execute(
            "UPDATE presence SET duplicated = ?2, online = CASE WHEN ?2 = 1 THEN 0 ELSE online END
                 WHERE device = ?1",
            params![id.as_str(), duplicated],
        )?;
        Ok(())
    }

    /// Marks every device as offline. Retained and new hellos mark them online again.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn mark_all_offline(&self) -> Result<()> {
        self.store.execute(
            "UPDATE presence SET online = 0, duplicated = 0, running = NULL",
            params![],
        )?;
        Ok(())
    }

    /// Returns every device that has said hello and has not been removed, by name. Others are only known from records of runs.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn all(&self) -> Result<Vec<DeviceRow>> {
        self.store.rows(
            &format!(
                "{SELECT_DEVICES} WHERE hellos > 0 AND id NOT IN (SELECT device FROM members WHERE removed IS NOT NULL)
                 ORDER BY name, id",
            ),
            params![],
            device,
        )
    }

    /// Returns the online devices with runs that have no record or must be aborted, by name. Its cost does not grow with idle devices.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn with_open_runs(&self) -> Result<Vec<DeviceRow>> {
        self.store.rows(
            &format!(
                "{SELECT_DEVICES} WHERE online = 1 AND id NOT IN (SELECT device FROM members WHERE removed IS NOT NULL)
                     AND id IN (SELECT device FROM runs WHERE recorded IS NULL
                                UNION SELECT device FROM runs WHERE pending_abort IS NOT NULL)
                 ORDER BY name, id",
            ),
            params![],
            device,
        )
    }

    /// Returns the names of every device, removed ones included, by id.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn names(&self) -> Result<BTreeMap<DeviceId, String>> {
        self.store.rows(
            "SELECT device AS id, name FROM members UNION ALL SELECT id, name FROM devices",
            params![],
            |row| Ok((values::parsed(row, "id")?, row.get("name")?)),
        )
    }

    /// Returns the public keys of every device, removed ones included. A key proven at enrollment wins over the key of a hello.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn public_keys(&self) -> Result<BTreeMap<DeviceId, [u8; 32]>> {
        self.store.rows(
            "SELECT id, public_key FROM devices UNION ALL SELECT device, public_key FROM members",
            params![],
            |row| Ok((values::parsed(row, "id")?, row.get("public_key")?)),
        )
    }

    /// Returns the public key of a device; see [`Devices::public_keys`].
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn public_key(&self, id: &DeviceId) -> Result<Option<[u8; 32]>> {
        self.store.optional(
            "SELECT public_key FROM members WHERE device = ?1 UNION ALL SELECT public_key
                 FROM devices WHERE id = ?1",
            params![id.as_str()],
            |row| row.get("public_key"),
        )
    }

    /// Returns one device.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn get(&self, id: &DeviceId) -> Result<Option<DeviceRow>> {
        self.store.optional(
            &format!("{SELECT_DEVICES} WHERE id = ?1"),
            params![id.as_str()],
            device,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_follows_from_the_agents_interval_of_heartbeats() {
        let device = |facts: &str| DeviceRow {
            id: "0".repeat(32).parse().unwrap(),
            name: String::new(),
            public_key: [0; 32],
            agent: String::new(),
            engines: Vec::new(),
            facts: facts.to_owned(),
            online: true,
            duplicated: false,
            running: None,
            readings: BoardReadings::default(),
            open_run: None,
            health: HealthRow::default(),
            labels: Vec::new(),
            hellos: 1,
            first_seen: String::new(),
            last_seen: String::new(),
        };
        let facts = |heartbeat_ms| {
            let facts = DeviceFacts {
                heartbeat_ms,
                ..DeviceFacts::default()
            };
            serde_json::to_string(&facts).unwrap()
        };
        for (heartbeat_ms, silent_after_s) in [
            (Some(250), 10),
            (Some(1_000), 10),
            (Some(20_000), 60),
            (Some(60_000), 180),
            // No agent declares more.
            (Some(u64::MAX), 180),
            (None, 180),
        ] {
            let found = device(&facts(heartbeat_ms)).silent_after_s();
            assert_eq!(found, silent_after_s, "{heartbeat_ms:?}");
        }
        assert_eq!(device("not JSON").silent_after_s(), 180);
    }
}
