//! Health of devices, apart from their activity: whether a device may take runs, and the cause, time and author of that decision. The log
//! of changes is append-only. This file does not decide which failures are a device's.

use regatta_types::{DeviceId, RunId};
use serde::Serialize;

use super::{Result, Store, now, values};
use crate::database::{Row, params};

/// The health of a device: whether to trust it with runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceHealth {
    /// The device has no findings.
    #[default]
    Good,
    /// The device's last failure was its own. It still takes runs.
    Suspect,
    /// The device takes no runs until a check or an operator clears it.
    Quarantined,
    /// An operator has taken it out of service.
    Maintenance,
}

impl DeviceHealth {
    /// Every health.
    pub const ALL: [Self; 4] = [Self::Good, Self::Suspect, Self::Quarantined, Self::Maintenance];

    /// Returns the word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Suspect => "suspect",
            Self::Quarantined => "quarantined",
            Self::Maintenance => "maintenance",
        }
    }
}

/// The user who takes a device out of service, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Maintenance {
    /// The time when it began, RFC 3339 UTC.
    pub since: String,
    /// The user.
    pub by: String,
    /// The user's note.
    pub note: Option<String>,
}

/// A device's health.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HealthRow {
    /// The health without regard to maintenance.
    pub verdict: DeviceHealth,
    /// The reason why it is not good.
    pub cause: Option<String>,
    /// The time when the verdict began, RFC 3339 UTC. `None` for a device that was always good.
    pub since: Option<String>,
    /// The author of the decision: `coordinator`, or a user.
    pub by: Option<String>,
    /// The number of failures in a row that were the device's own.
    pub failures: u32,
    /// Whether only an operator can clear it, because a check proves nothing.
    pub needs_operator: bool,
    /// The maintenance, if there is one.
    pub maintenance: Option<Maintenance>,
}

/// An event that changes a device's health.
#[derive(Debug, Clone, Copy)]
pub enum HealthChange<'a> {
    /// A run ended with a good result.
    RunSucceeded(RunId),
    /// A run failed because of the device. After `limit` failures in a row the device is quarantined.
    DeviceFailed {
        run: RunId,
        /// The reason of the failure.
        reason: &'a str,
        /// The number of failures in a row that quarantines.
        limit: u32,
    },
    /// Two agents use the device's identity.
    Duplicated,
    /// An operator takes the device out of service.
    Drained(Option<&'a str>),
    /// An operator puts it back into service.
    Resumed,
    /// An operator clears it.
    Cleared(Option<&'a str>),
    CheckPassed,
    CheckFailed(&'a str),
}

/// A change as it is logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HealthLogEntry {
    /// The time, RFC 3339 UTC.
    pub at: String,
    pub change: String,
    /// The health after it.
    pub health: String,
    pub reason: Option<String>,
    /// The author: `coordinator`, or a user.
    pub by: String,
    /// The run, if one was the reason.
    pub run: Option<RunId>,
}

/// When, by whom and why a device got its health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthOrigin<'a> {
    /// The time, RFC 3339 UTC.
    pub since: Option<&'a str>,
    /// The user or the part of the coordinator.
    pub by: Option<&'a str>,
    /// The reason or the operator's note.
    pub cause: Option<&'a str>,
}

impl HealthRow {
    /// Returns the health that is shown: maintenance hides the verdict.
    pub const fn health(&self) -> DeviceHealth {
        if self.maintenance.is_some() {
            DeviceHealth::Maintenance
        } else {
            self.verdict
        }
    }

    /// Returns whether the device is sent new runs.
    pub const fn can_take_runs(&self) -> bool {
        matches!(self.health(), DeviceHealth::Good | DeviceHealth::Suspect)
    }

    /// Returns the origin of the health that is shown.
    pub fn shown(&self) -> HealthOrigin<'_> {
        match &self.maintenance {
            Some(drained) => HealthOrigin {
                since: Some(&drained.since),
                by: Some(&drained.by),
                cause: drained.note.as_deref(),
            },
            None => HealthOrigin {
                since: self.since.as_deref(),
                by: self.by.as_deref(),
                cause: self.cause.as_deref(),
            },
        }
    }

    /// Returns the health after a change at `at` by `by`. `None` when the change has no effect and is not logged.
    pub fn after(&self, change: HealthChange<'_>, at: &str, by: &str) -> Option<Self> {
        let judged = |verdict, cause: String| Self {
            verdict,
            cause: Some(cause),
            since: Some(at.to_owned()),
            by: Some(by.to_owned()),
            ..self.clone()
        };
        let good = || Self {
            verdict: DeviceHealth::Good,
            cause: None,
            since: Some(at.to_owned()),
            by: Some(by.to_owned()),
            failures: 0,
            needs_operator: false,
            maintenance: self.maintenance.clone(),
        };
        let is_quarantined = self.verdict == DeviceHealth::Quarantined;
        match change {
            HealthChange::RunSucceeded(_) => (self.verdict == DeviceHealth::Suspect).then(good),
            HealthChange::DeviceFailed { reason, limit, .. } => {
                let failures = self.failures.saturating_add(1);
                let next = match failures {
                    _ if is_quarantined => self.clone(),
                    1 if limit > 1 => judged(DeviceHealth::Suspect, reason.to_owned()),
                    _ if failures < limit => judged(
                        DeviceHealth::Suspect,
                        format!("{failures} failures in a row, the last: {reason}"),
                    ),
                    1 => judged(DeviceHealth::Quarantined, reason.to_owned()),
                    _ => judged(
                        DeviceHealth::Quarantined,
                        format!("{failures} failures in a row, the last: {reason}"),
                    ),
                };
                Some(Self { failures, ..next })
            }
            HealthChange::Duplicated if self.needs_operator => None,
            HealthChange::Duplicated => Some(Self {
                needs_operator: true,
                ..judged(
                    DeviceHealth::Quarantined,
                    "two agents used its identity: a card or state directory was copied".to_owned(),
                )
            }),
            HealthChange::Drained(note) => self.maintenance.is_none().then(|| Self {
                maintenance: Some(Maintenance {
                    since: at.to_owned(),
                    by: by.to_owned(),
                    note: note.map(str::to_owned),
                }),
                ..self.clone()
            }),
            HealthChange::Resumed => self.maintenance.is_some().then(|| Self {
                maintenance: None,
                ..self.clone()
            }),
            HealthChange::Cleared(_) => (self.verdict != DeviceHealth::Good).then(good),
            HealthChange::CheckPassed if self.needs_operator || self.verdict == DeviceHealth::Good => {
                Some(self.clone())
            }
            HealthChange::CheckPassed => Some(good()),
            HealthChange::CheckFailed(_) if self.needs_operator => Some(self.clone()),
            HealthChange::CheckFailed(reason) => Some(judged(
                DeviceHealth::Quarantined,
                format!("its check failed: {reason}"),
            )),
        }
    }
}

impl HealthChange<'_> {
    /// Returns the change in words.
    const fn words(&self) -> &'static str {
        match self {
            Self::RunSucceeded(_) => "run succeeded",
            Self::DeviceFailed { .. } => "run failed because of the device",
            Self::Duplicated => "identity duplicated",
            Self::Drained(_) => "drained",
            Self::Resumed => "resumed",
            Self::Cleared(_) => "cleared",
            Self::CheckPassed => "check passed",
            Self::CheckFailed(_) => "check failed",
        }
    }

    const fn run(&self) -> Option<RunId> {
        match self {
            Self::RunSucceeded(run) | Self::DeviceFailed { run, .. } => Some(*run),
            _ => None,
        }
    }

    const fn reason(&self) -> Option<&str> {
        match self {
            Self::DeviceFailed { reason, .. } | Self::CheckFailed(reason) => Some(reason),
            Self::Drained(note) | Self::Cleared(note) => *note,
            _ => None,
        }
    }
}

/// Reads the columns of `device_health`. They are NULL in a join for a device without a row.
pub(super) fn health(row: &Row<'_>) -> Result<HealthRow> {
    let verdict: Option<String> = row.get("verdict")?;
    let drained: Option<String> = row.get("drained")?;
    let maintenance = match drained {
        None => None,
        Some(since) => Some(Maintenance {
            since,
            by: row.get::<Option<String>>("drained_by")?.unwrap_or_default(),
            note: row.get("drain_note")?,
        }),
    };
    Ok(HealthRow {
        verdict: match verdict.as_deref() {
            Some("quarantined") => DeviceHealth::Quarantined,
            Some("suspect") => DeviceHealth::Suspect,
            _ => DeviceHealth::Good,
        },
        cause: row.get("cause")?,
        since: row.get("since")?,
        by: row.get("judged_by")?,
        failures: row.get::<Option<u32>>("failures")?.unwrap_or(0),
        needs_operator: row.get::<Option<bool>>("needs_operator")?.unwrap_or(false),
        maintenance,
    })
}

/// The health of devices, and the log of its changes.
#[derive(Debug)]
pub struct Health<'a> {
    pub(super) store: &'a Store,
}

impl Health<'_> {
    /// Returns a device's health. A device without a history is good.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn get(&self, device: &DeviceId) -> Result<HealthRow> {
        let found = self.store.optional(
            "SELECT * FROM device_health WHERE device = ?1",
            params![device.as_str()],
            health,
        )?;
        Ok(found.unwrap_or_default())
    }

    /// Returns whether a device is sent new runs: it is neither quarantined nor in maintenance.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn can_take_runs(&self, device: &DeviceId) -> Result<bool> {
        Ok(self.get(device)?.can_take_runs())
    }

    /// Changes a device's health and logs it. Returns the health after it, or `None` when nothing changed. A run counts once, also when it is
    /// recorded again. Call this in a transaction.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn change(&self, device: &DeviceId, change: HealthChange<'_>, by: &str) -> Result<Option<HealthRow>> {
        let run = change.run().map(|run| run.to_string());
        let is_logged: bool = self.store.row(
            "SELECT EXISTS (SELECT 1 FROM device_log WHERE device = ?1 AND run = ?2)",
            params![device.as_str(), run],
            |row| row.get(0),
        )?;
        let at = now();
        let next = self.get(device)?.after(change, &at, by);
        let Some(next) = next.filter(|_| !is_logged) else {
            return Ok(None);
        };
        let drained = next.maintenance.as_ref();
        self.store.execute(
            "INSERT INTO device_health (device, verdict, cause, since, judged_by, failures, needs_operator,
                 drained, drained_by, drain_note) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
                 ON CONFLICT (device) DO UPDATE SET verdict = ?2, cause = ?3, since = ?4, judged_by = ?5, failures =
                 ?6, needs_operator = ?7, drained = ?8, drained_by = ?9, drain_note = ?10", params![
                device.as_str(),
                next.verdict.as_str(),
                next.cause,
                next.since,
                next.by,
                next.failures,
                next.needs_operator,
                drained.map(|drained| &drained.since),
                drained.map(|drained| &drained.by),
                drained.and_then(|drained| drained.note.as_ref()),
            ])?;
        self.store.execute(
            "INSERT INTO device_log (device, at, change, health, reason, changed_by, run)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                device.as_str(),
                at,
                change.words(),
                next.health().as_str(),
                change.reason(),
                by,
                run,
            ],
        )?;
        Ok(Some(next))
    }

    /// Returns the log of a device's health, oldest first.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn log(&self, device: &DeviceId) -> Result<Vec<HealthLogEntry>> {
        self.store.rows(
            "SELECT * FROM device_log WHERE device = ?1 ORDER BY number",
            params![device.as_str()],
            |row| {
                Ok(HealthLogEntry {
                    at: row.get("at")?,
                    change: row.get("change")?,
                    health: row.get("health")?,
                    reason: row.get("reason")?,
                    by: row.get("changed_by")?,
                    run: values::optional_parsed(row, "run")?,
                })
            },
        )
    }
}

#[cfg(test)]
mod tests;
