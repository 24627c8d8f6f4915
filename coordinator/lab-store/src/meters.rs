//! Power meters of the lab, and their leases: one session at a time per meter.
//!
//! A lease belongs to a thread of a process. When that thread certainly no longer exists, the lease is stale, and the next session takes it
//! over.
//! The lease of a meter is also the lease of the device that is measured: `leased_devices` has that part.

use std::fs;

use regatta_types::{
    DeviceId, RunId,
    documents::{EndCause, MeterSettings, RecordedFailure},
};
use serde::{Deserialize, Serialize};

use super::{Result, Store, StoreError, now, values};
use crate::boot_id;
use crate::database::{Row, params};

/// A meter of the lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterRow {
    /// The name that the user gave it.
    pub name: String,
    /// Its connection and use.
    pub settings: MeterSettings,
    /// The time when it was added.
    pub added: String,
    /// The process that uses it.
    pub lease: Option<Lease>,
}

/// A session that has, or had, the meter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The session's id.
    pub session: String,
    /// The time when it began.
    pub since: String,
    /// The device that the session measures.
    pub device: Option<DeviceId>,
    holder: Holder,
}

/// The state of the thread that holds a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// The thread runs.
    Held,
    /// The thread is gone.
    Stale,
    /// The process is on another machine or in another container, where it may run. The lease is held.
    Unknown,
}

impl Lease {
    /// Returns the state of the thread that took it.
    pub fn state(&self) -> LeaseState {
        let own = Holder::this_thread();
        match own.is_some_and(|own| self.holder.is_comparable_with(&own)) {
            false => LeaseState::Unknown,
            true if Holder::of(self.holder.pid, self.holder.thread).as_ref() == Some(&self.holder) => {
                LeaseState::Held
            }
            true => LeaseState::Stale,
        }
    }

    /// Returns the id of the process that took it.
    pub fn pid(&self) -> u32 {
        self.holder.pid
    }

    /// Returns whether a campaign's session took the lease. The coordinator runs these sessions on separate threads.
    pub const fn is_of_campaign(&self) -> bool {
        self.holder.thread != self.holder.pid
    }

    /// Returns whether this thread took it. A thread makes its sessions one after the other.
    fn is_own(&self) -> bool {
        Holder::this_thread().as_ref() == Some(&self.holder)
    }
}

/// A thread of a process, so that another one with the same number is not taken for it. The coordinator makes each session of its campaigns
/// in a thread: a session that panics leaves a stale lease, although its process still runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Holder {
    pid: u32,
    thread: u32,
    /// Clock ticks from the boot to the thread's start.
    started: u64,
    boot: String,
    /// The PID namespace: containers count their processes on their own.
    #[serde(default)]
    namespace: String,
    /// The machine, as systemd numbers it. Two machines may share a workspace's disk.
    #[serde(default)]
    machine: String,
}

impl Holder {
    /// Returns the thread that calls this.
    fn this_thread() -> Option<Self> {
        let thread = rustix::thread::gettid().as_raw_pid();
        Self::of(std::process::id(), u32::try_from(thread).ok()?)
    }

    /// Returns a thread of a process, if there is one.
    fn of(pid: u32, thread: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
        // The name before the last `)` may contain spaces. The start is field 22; the state is field 3.
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        if matches!(fields.next(), Some("Z" | "X") | None) {
            return None;
        }
        let started = fields.nth(18)?.parse().ok()?;
        let boot = boot_id::of_this_machine()?;
        let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
        let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
        Some(Self {
            pid,
            thread,
            started,
            boot,
            namespace: namespace.to_string_lossy().into_owned(),
            machine: machine.trim().to_owned(),
        })
    }

    /// Returns whether `own`, a process of this namespace and boot, can see this one.
    fn is_comparable_with(&self, own: &Self) -> bool {
        match self.boot == own.boot {
            true => self.namespace == own.namespace,
            // A restart ends every process of the machine.
            false => !self.machine.is_empty() && self.machine == own.machine,
        }
    }
}

/// A device with a power session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedDevice {
    pub device: DeviceId,
    /// The meter that measures it.
    pub meter: String,
    pub session: String,
}

/// The result of a request for a meter and a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leased {
    /// Meter and device are leased to the session. A stale lease of another one has ended.
    Taken { ended: Option<Lease> },
    /// Another session uses the meter, or may use it.
    MeterBusy(Lease),
    /// A session with another meter uses the device, or may use it.
    DeviceBusy(LeasedDevice),
    /// The device has runs that were not requested by a power session.
    DeviceHasRuns(Vec<RunId>),
    /// There is no such meter any more.
    Gone,
}

fn meter(row: &Row<'_>) -> Result<MeterRow> {
    let session: Option<String> = row.get("session")?;
    let lease = match session {
        Some(session) => Some(Lease {
            session,
            since: row.get("since")?,
            device: values::optional_parsed(row, "device")?,
            holder: values::json(row, "holder")?,
        }),
        None => None,
    };
    Ok(MeterRow {
        name: row.get("name")?,
        settings: values::json(row, "settings")?,
        added: row.get("added")?,
        lease,
    })
}

/// The power meters, and their leases.
#[derive(Debug)]
pub struct Meters<'a> {
    pub(super) store: &'a Store,
}

impl Meters<'_> {
    /// Stores a meter. Returns `false` when there is one with that name and `replace` is not set.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn put(&self, name: &str, settings: &MeterSettings, replace: bool) -> Result<bool> {
        let conflict = if replace {
            "DO UPDATE SET settings = ?2"
        } else {
            "DO NOTHING"
        };
        let kept = self.store.execute(
            &format!(
                "INSERT INTO meters (name, settings, added) VALUES (?1, ?2, ?3)
                     ON CONFLICT (name) {conflict}"
            ),
            params![name, values::to_json(settings)?, now()],
        )?;
        Ok(kept > 0)
    }

    /// Removes a meter without a lease. Returns `false` when there is no such meter, or a session has leased it.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn remove(&self, name: &str) -> Result<bool> {
        let dropped = self.store.execute(
            "DELETE FROM meters WHERE name = ?1 AND session IS NULL",
            params![name],
        )?;
        Ok(dropped > 0)
    }

    /// Returns every meter, by name.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn all(&self) -> Result<Vec<MeterRow>> {
        self.store
            .rows("SELECT * FROM meters ORDER BY name", params![], meter)
    }

    /// Returns one meter.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn get(&self, name: &str) -> Result<Option<MeterRow>> {
        self.store
            .optional("SELECT * FROM meters WHERE name = ?1", params![name], meter)
    }

    /// Leases a meter and the device that it measures to a session of this thread, both or neither. The session of a stale lease fails in
    /// the same transaction: nothing else would end it, because no lease names it any more.
    ///
    /// # Errors
    /// Returns an error when the store fails or this process cannot be identified.
    pub fn lease(&self, name: &str, session: &str, device: &DeviceId) -> Result<Leased> {
        let holder = Holder::this_thread().ok_or(StoreError::ProcessUnknown)?;
        self.store.all_or_nothing(|store| {
            let lease = store.meters().get(name)?.and_then(|row| row.lease);
            // A lease of this thread is left of a session whose end could not be stored.
            if let Some(lease) = &lease
                && lease.state() != LeaseState::Stale
                && !lease.is_own()
            {
                return Ok(Leased::MeterBusy(lease.clone()));
            }
            if let Some(other) = store
                .meters()
                .leased_device(device)?
                .filter(|other| other.meter != name)
            {
                return Ok(Leased::DeviceBusy(other));
            }
            let runs = store.runs().unfinished_beside_sessions(device)?;
            if !runs.is_empty() {
                return Ok(Leased::DeviceHasRuns(runs));
            }
            let leased = store.execute(
                "UPDATE meters SET session = ?2, since = ?3, holder = ?4, device = ?5 WHERE name = ?1",
                params![name, session, now(), values::to_json(&holder)?, device.as_str()],
            )?;
            if leased == 0 {
                return Ok(Leased::Gone);
            }
            if let Some(ended) = &lease {
                let failure = RecordedFailure {
                    cause: EndCause::Infrastructure,
                    reason: "the process of this session ended in the middle".to_owned(),
                };
                store.power_sessions().fail(&ended.session, &failure)?;
            }
            Ok(Leased::Taken { ended: lease })
        })
    }

    /// Ends a session's lease. Returns `false` when the session has none of this meter.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn release(&self, name: &str, session: &str) -> Result<bool> {
        let released = self.store.execute(
            "UPDATE meters SET session = NULL, since = NULL, holder = NULL, device = NULL WHERE name = ?1 AND session = ?2
             AND NOT EXISTS (SELECT 1 FROM power_sessions WHERE id = ?2 AND ended IS NULL)",
            params![name, session],
        )?;
        Ok(released > 0)
    }
}

#[cfg(test)]
mod tests;
