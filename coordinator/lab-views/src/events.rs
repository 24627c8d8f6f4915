//! The changes of devices, runs, campaigns and power sessions, found by comparing the store with its earlier state. Nothing is kept between
//! two processes: a state that lasts less than the time between two looks may be missed, the last state of each is not.

use std::collections::BTreeMap;

use jiff::Timestamp;
use regatta_types::{DeviceId, RunId};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    documents::{self, campaign_summary, run_document},
    wording::{self, run_text},
};
use regatta_lab_store::{CampaignRow, DeviceRow, RunRow, Store};

/// The changed thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventSubject {
    Device,
    Run,
    Campaign,
    PowerSession,
}

/// A change as a JSON document: the fields of the changed thing beside time and kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// The time when it was seen, RFC 3339 UTC.
    pub time: String,
    pub event: EventSubject,
    #[serde(flatten)]
    document: Value,
    /// The new state in words.
    #[serde(skip)]
    pub text: String,
}

impl Event {
    /// Returns the id of the changed thing. Ids of different things differ.
    pub fn id(&self) -> &str {
        let key = match self.event {
            EventSubject::Device => "device",
            EventSubject::Run => "run",
            EventSubject::Campaign => "campaign",
            EventSubject::PowerSession => "session",
        };
        self.document[key].as_str().unwrap_or_default()
    }
}

/// Finds changes in the store.
pub struct EventSource<'a> {
    store: &'a Store,
    /// The store's version at the last look. `None` before the first one.
    version: Option<i64>,
    devices: BTreeMap<DeviceId, Value>,
    /// The runs that are not recorded yet.
    runs: BTreeMap<RunId, Value>,
    newest_run: Option<RunId>,
    campaigns: BTreeMap<String, Value>,
    /// The power sessions that go on.
    power_sessions: BTreeMap<String, Value>,
    newest_power_session: Option<String>,
}

impl<'a> EventSource<'a> {
    /// Creates a source whose first look finds everything that is open: every device, and the runs, campaigns and power sessions that are not over.
    pub fn new(store: &'a Store) -> Self {
        Self {
            store,
            version: None,
            devices: BTreeMap::new(),
            runs: BTreeMap::new(),
            newest_run: None,
            campaigns: BTreeMap::new(),
            power_sessions: BTreeMap::new(),
            newest_power_session: None,
        }
    }

    /// Returns the changes since the last look: of devices, then of runs in the order of their requests, then of campaigns and of power sessions.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn look(&mut self) -> anyhow::Result<Vec<Event>> {
        let version = self.store.data_version()?;
        if self.version == Some(version) {
            return Ok(Vec::new());
        }
        let is_first = self.version.replace(version).is_none();
        let mut events = Vec::new();
        self.look_at_devices(&mut events)?;
        self.look_at_runs(is_first, &mut events)?;
        self.look_at_campaigns(is_first, &mut events)?;
        self.look_at_power_sessions(is_first, &mut events)?;
        Ok(events)
    }

    fn look_at_devices(&mut self, events: &mut Vec<Event>) -> anyhow::Result<()> {
        let rows = self.store.devices().all()?;
        for row in &rows {
            let document = device(row);
            if self.devices.insert(row.id.clone(), document.clone()).as_ref() != Some(&document) {
                events.push(event(
                    EventSubject::Device,
                    document,
                    wording::describe_device(row),
                ));
            }
        }
        let is_known = |id: &DeviceId| rows.iter().any(|row| row.id == *id);
        for (id, last) in self.devices.extract_if(.., |id, _| !is_known(id)) {
            let name = last["name"].as_str().unwrap_or_default().to_owned();
            let document = json!({ "device": id, "name": name, "state": "removed" });
            events.push(event(EventSubject::Device, document, format!("{name}: removed")));
        }
        Ok(())
    }

    fn look_at_runs(&mut self, is_first: bool, events: &mut Vec<Event>) -> anyhow::Result<()> {
        let mut rows = self.store.runs().open()?;
        let is_open = |id: &RunId| rows.iter().any(|row| row.id == *id);
        let over: Vec<RunId> = self.runs.keys().copied().filter(|id| !is_open(id)).collect();
        let new = match self.newest_run {
            _ if is_first => self.store.runs().newest()?.into_iter().collect(),
            Some(last) => self.store.runs().requested_after(last)?,
            None => self.store.runs().all()?,
        };
        self.newest_run = new.iter().map(|row| row.id).max().or(self.newest_run);
        // A run may have been requested and recorded since the last look.
        rows.extend(new.into_iter().filter(|row| !is_first && row.recorded.is_some()));
        for id in over {
            self.runs.remove(&id);
            match self.store.runs().get(id)? {
                Some(row) => rows.push(row),
                None => {
                    let document = json!({ "run": id, "phase": "removed" });
                    events.push(event(EventSubject::Run, document, format!("run {id}: removed")));
                }
            }
        }
        rows.sort_unstable_by_key(|row| row.id);
        rows.dedup_by_key(|row| row.id);
        for row in &rows {
            let document = serde_json::to_value(run_document(row))?;
            let is_known = self.runs.get(&row.id) == Some(&document);
            if row.recorded.is_none() {
                self.runs.insert(row.id, document.clone());
            }
            if !is_known {
                events.push(event(EventSubject::Run, document, run_words(row)));
            }
        }
        Ok(())
    }

    fn look_at_power_sessions(&mut self, is_first: bool, events: &mut Vec<Event>) -> anyhow::Result<()> {
        let rows = self.store.power_sessions().all()?;
        let newest = rows.first().map(|row| row.id.clone());
        let last_newest = std::mem::replace(&mut self.newest_power_session, newest);
        for row in rows.into_iter().rev() {
            let is_new = !is_first && last_newest.as_ref().is_none_or(|last| row.id > *last);
            let last = self.power_sessions.remove(&row.id);
            if last.is_none() && !is_new && row.ended.is_some() {
                continue;
            }
            let document = documents::power_session(&row);
            if last.as_ref() != Some(&document) {
                let text = wording::describe_power_session(&row);
                events.push(event(EventSubject::PowerSession, document.clone(), text));
            }
            if row.ended.is_none() {
                self.power_sessions.insert(row.id, document);
            }
        }
        Ok(())
    }

    fn look_at_campaigns(&mut self, is_first: bool, events: &mut Vec<Event>) -> anyhow::Result<()> {
        let is_watched = |row: &CampaignRow| row.ended.is_none() || !is_first;
        for row in self.store.campaigns().all()? {
            let last = self.campaigns.get(&row.name);
            let is_over = |last: &Value| !last["ended"].is_null();
            if last.is_some_and(is_over) || (last.is_none() && !is_watched(&row)) {
                continue;
            }
            let summary = campaign_summary(&row, self.store)?;
            let document = serde_json::to_value(&summary)?;
            if last != Some(&document) {
                let counts = wording::campaign_counts(&summary);
                let text = format!("campaign {} {}: {counts}", summary.campaign, summary.state);
                events.push(event(EventSubject::Campaign, document.clone(), text));
                self.campaigns.insert(row.name, document);
            }
        }
        Ok(())
    }
}

fn event(event: EventSubject, document: Value, text: String) -> Event {
    Event {
        time: Timestamp::now().to_string(),
        event,
        document,
        text,
    }
}

/// Returns the changing fields of a device, without its description and its heartbeats.
fn device(row: &DeviceRow) -> Value {
    let cause = row.health.shown().cause;
    json!({
        "device": row.id,
        "name": row.name,
        "state": row.activity().as_str(),
        "run": row.open_run,
        "health": row.health.health().as_str(),
        "health_cause": cause,
        "labels": row.labels,
        "agent": row.agent,
    })
}

fn run_words(row: &RunRow) -> String {
    let state = match run_text::waits_for(row) {
        _ if row.is_over() => run_text::result(row),
        Some(why) => format!("{}: {why}", row.shown_phase()),
        None => row.shown_phase().to_string(),
    };
    format!("{}: {state}", run_text::subject(row))
}
