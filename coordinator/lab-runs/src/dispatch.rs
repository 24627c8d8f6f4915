//! Sends runs to their devices and repeats requests until the devices answer. The store holds all its state, except for the time of the
//! last requests.
//!
//! A device gets one run at a time, because the rates of the next run are estimated from the results of the last.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use regatta_fsutil::{atomic_file::sync_directory, hash::sha256_hex};
use regatta_types::{DeviceId, RunId, StreamName, documents::RunPhase};
use regatta_wire::{
    frame,
    message::{Command, Message as _},
    topic::{Leaf, Topic},
};

use super::{
    device_judgement::judge_unsealed_runs,
    estimate::estimate,
    limits::RunLimits,
    retry_schedule::RetrySchedule,
    spec_file::{read_spec, write_specs},
};
use regatta_lab_net::{keys::Keys, link::Publisher};
use regatta_lab_store::{
    self as store, DeviceRow, OpenRun, RunRow, Store, StreamRow, change_notifier::ChangeNotifier,
    workspace::Workspace,
};

/// The interval for polling the store. Commands of other processes change it without a notification.
const PAUSE: Duration = Duration::from_millis(200);
/// The interval for a full check although nothing changed, to repeat requests.
const RECHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The time after which a request is repeated.
const REPEAT_AFTER: Duration = Duration::from_secs(5);
/// The interval for recording the time of service. Time that is lost when a coordinator ends only keeps runs longer.
const COUNT_SERVICE: Duration = Duration::from_secs(60);
/// Upper bound for the pause between polls; otherwise the pause equals the last poll's duration. With many open runs a poll takes long,
/// while the ingest reports changes all the time.
const MAX_REST: Duration = Duration::from_millis(500);
/// The most runs that begin together. They share the flushes of the disk, and fit into the link's queue.
const BATCH: usize = 256;
/// The maximum size of a command and its signature besides the spec, in bytes.
const AROUND_A_SPEC: usize = 256;

/// The time without news of a run after which its device is queried. It doubles with each query, up to the longest.
const SILENCE: Duration = Duration::from_secs(10);
/// The same for a run in its timed window: two intervals of the slowest heartbeat, which would report a change.
const SILENCE_WHILE_RUNNING: Duration = Duration::from_secs(120);
const MAX_SILENCE: Duration = Duration::from_secs(300);

/// A command to a device about a run.
type Request = (DeviceId, RunId, Command);
type Requests = Vec<Request>;

/// The time since the last news of a run.
struct Silence {
    /// The revision of the run's last state.
    revision: u64,
    /// Its delivered bytes at the last reading.
    bytes: u64,
    since: Instant,
    patience: Duration,
}

impl Silence {
    fn of(run: &OpenRun, bytes: u64) -> Self {
        Self {
            revision: run.revision,
            bytes,
            since: Instant::now(),
            patience: if run.phase == RunPhase::Running {
                SILENCE_WHILE_RUNNING
            } else {
                SILENCE
            },
        }
    }

    fn is_over(&self) -> bool {
        self.since.elapsed() >= self.patience
    }

    /// Doubles the time to the next query, from now on.
    fn record_query(&mut self) {
        self.since = Instant::now();
        self.patience = self.patience.saturating_mul(2).min(MAX_SILENCE);
    }
}

/// Returns the bytes of a run that are on disk here.
fn delivered(streams: &[StreamRow]) -> u64 {
    streams.iter().map(|stream| stream.committed).sum()
}

/// Starts the dispatcher. It ends when the notifier is closed.
///
/// # Errors
/// Returns an error when the store cannot be opened or the thread cannot start.
pub fn start(
    workspace: &Workspace,
    keys: Option<Arc<Keys>>,
    publisher: impl Publisher + 'static,
    notifier: ChangeNotifier,
) -> anyhow::Result<JoinHandle<()>> {
    let dispatcher = Dispatcher {
        workspace: workspace.clone(),
        store: workspace.store()?,
        keys,
        publisher: Box::new(publisher),
        requested: BTreeMap::new(),
        silences: BTreeMap::new(),
        complained: BTreeSet::new(),
        limits: RunLimits::default(),
        examinations: RetrySchedule::with_first_pause(REPEAT_AFTER),
    };
    thread::Builder::new()
        .name("dispatch".to_owned())
        .spawn(move || dispatcher.run(&notifier))
        .context("cannot start the dispatcher's thread")
}

struct Dispatcher {
    workspace: Workspace,
    store: Store,
    /// The keys that sign commands, in a lab with keys.
    keys: Option<Arc<Keys>>,
    publisher: Box<dyn Publisher>,
    /// The time of each run's last request, and the device's number of hellos at that time.
    requested: BTreeMap<RunId, (Instant, u64)>,
    /// The time without news for each run that its device has.
    silences: BTreeMap<RunId, Silence>,
    /// Runs that could not be sent. Each is logged once and retried.
    complained: BTreeSet<RunId>,
    /// The time of runs with a limit.
    limits: RunLimits,
    /// The repetitions of examination requests, by request and the device's number of hellos.
    examinations: RetrySchedule<(RunId, u64)>,
}

impl Dispatcher {
    fn run(mut self, notifier: &ChangeNotifier) {
        let mut heard = notifier.changes();
        let mut version = None;
        let mut looked = Instant::now();
        let mut counted = Instant::now();
        while let Some(count) = notifier.wait(heard, PAUSE) {
            if counted.elapsed() >= COUNT_SERVICE {
                match self.store.service().add_time_served(COUNT_SERVICE) {
                    Ok(()) => counted += COUNT_SERVICE,
                    Err(error) => tracing::error!("dispatch: {:#}", anyhow::Error::from(error)),
                }
            }
            let now_version = self.store.data_version().ok();
            if count == heard && now_version == version && looked.elapsed() < RECHECK_INTERVAL {
                continue;
            }
            (heard, version, looked) = (count, now_version, Instant::now());
            if let Err(error) = self.look() {
                tracing::error!("dispatch: {error:#}");
            }
            thread::sleep(looked.elapsed().min(MAX_REST));
        }
    }

    fn look(&mut self) -> anyhow::Result<()> {
        if self.limits.look(&self.store, Instant::now())? {
            tracing::info!("a run reached its limit");
        }
        judge_unsealed_runs(&self.store, self.workspace.config().quarantine_after)?;
        let devices = self.store.devices().with_open_runs()?;
        let open = self.store.runs().open_states()?;
        let mut runs_of: BTreeMap<&DeviceId, Vec<&OpenRun>> = BTreeMap::new();
        for run in &open {
            runs_of.entry(&run.device).or_default().push(run);
        }
        let mut requested = BTreeSet::new();
        let mut begins = Vec::new();
        let mut requests = Requests::new();
        let ids: BTreeSet<RunId> = open.iter().map(|run| run.id).collect();
        self.silences.retain(|id, _| ids.contains(id));
        // Sent before the next run starts, so that no command arrives in its timed window.
        self.give_up_recorded_runs()?;
        for device in &devices {
            let mine = runs_of.get(&device.id).map_or(&[][..], Vec::as_slice);
            requested.extend(mine.iter().map(|run| run.id));
            let aborts = self.store.runs().pending_aborts(&device.id)?;
            for (run, reason) in &aborts {
                requested.insert(*run);
                requests.extend(self.due_abort(*run, device, reason));
            }
            for run in mine.iter().filter(|run| run.is_fixed) {
                requests.extend(self.due_request(run, device)?);
            }
            // A quarantined or drained device finishes its run and gets no other.
            let takes_runs = device.health.can_take_runs();
            if let Some(next) = mine.iter().find(|run| takes_runs || run.is_forced)
                && mine.iter().all(|run| !run.is_fixed)
                // A given-up run may still execute there.
                && aborts.is_empty()
            {
                begins.push((*next, device));
            }
        }
        for batch in requests.chunks(BATCH) {
            self.send_all(batch)?;
        }
        for batch in begins.chunks(BATCH) {
            self.begin(batch)?;
        }
        self.requested.retain(|id, _| requested.contains(id));
        self.request_examinations()
    }

    /// Sends examination requests. Repeats each after every new connection, and otherwise less and less often until there is an answer, because a
    /// command may be lost here, in the broker, or on the way. Sends `Forget` for each refusal.
    fn request_examinations(&mut self) -> anyhow::Result<()> {
        let open = self.store.examinations().unanswered()?;
        self.examinations
            .retain(|(id, hellos)| open.iter().any(|open| open.id == *id && open.hellos == *hellos));
        for request in &open {
            let key = (request.id, request.hellos);
            if self.examinations.is_due(&key, Instant::now()) {
                self.send(&request.device, request.id, &Command::Examine)?;
                self.examinations.failed(key, Instant::now());
            }
        }
        for (id, device) in self.store.examinations().unacknowledged_refusals()? {
            self.send(&device, id, &Command::Forget)?;
            self.store.examinations().acknowledge_refusal(id)?;
        }
        Ok(())
    }

    /// Sends `Release` and `Forget` for recorded runs, and `Forget` for removed ones. A device may delete a released run, and must delete a forgotten one.
    fn give_up_recorded_runs(&self) -> anyhow::Result<()> {
        let release = |(run, device)| (device, run, Command::Release);
        let releases: Requests = self.store.runs().releasable()?.into_iter().map(release).collect();
        for batch in releases.chunks(BATCH) {
            self.send_all(batch)?;
            self.store.all_or_nothing(|store| {
                let mut sent = batch.iter();
                sent.try_for_each(|(_, run, _)| store.runs().mark_release_sent(*run))
            })?;
        }
        let kept = self.workspace.config().keep_on_device.as_secs();
        let forget = |(run, device)| (device, run, Command::Forget);
        let forgets: Requests = self
            .store
            .runs()
            .forgettable(kept)?
            .into_iter()
            .map(forget)
            .collect();
        for batch in forgets.chunks(BATCH) {
            self.send_all(batch)?;
            self.store.all_or_nothing(|store| {
                let mut sent = batch.iter();
                sent.try_for_each(|(_, run, _)| store.runs().set_forget_sent(*run, true))
            })?;
        }
        for removed in self.store.removed_runs().unsent()? {
            // A device only forgets released runs, and this one may have been removed before its release.
            if removed.is_released {
                self.send(&removed.device, removed.run, &Command::Release)?;
            }
            self.send(&removed.device, removed.run, &Command::Forget)?;
            self.store.removed_runs().mark_sent(removed.run)?;
        }
        Ok(())
    }

    /// Returns the request that a device has not answered yet, if it is due.
    fn due_request(&mut self, run: &OpenRun, device: &DeviceRow) -> anyhow::Result<Option<Request>> {
        if run.lost {
            return Ok(None);
        }
        let requested_end = run.abort.as_ref().filter(|_| !run.phase.is_final());
        if let Some(reason) = requested_end {
            return Ok(self.due_abort(run.id, device, reason));
        }
        // Before these phases there is no server, and behind them it has ended.
        if run.known && run.stops_server && matches!(run.phase, RunPhase::Ready | RunPhase::Running) {
            let is_due = self.claim_request(run.id, device);
            return Ok(is_due.then(|| (device.id.clone(), run.id, Command::StopServer)));
        }
        if run.known {
            return self.due_query(run, device);
        }
        if !self.claim_request(run.id, device) {
            return Ok(None);
        }
        match read_spec(&self.workspace.run(run.id)) {
            Ok(spec_json) => Ok(Some((device.id.clone(), run.id, Command::Start { spec_json }))),
            // Requests to other devices do not depend on it.
            Err(error) => {
                self.complain(run.id, &error);
                Ok(None)
            }
        }
    }

    fn due_abort(&mut self, run: RunId, device: &DeviceRow, reason: &str) -> Option<Request> {
        let reason = reason.to_owned();
        self.claim_request(run, device)
            .then(|| (device.id.clone(), run, Command::Abort { reason }))
    }

    /// Returns whether a request is due, and notes it as sent: the last is a while ago, or the device has connected since.
    fn claim_request(&mut self, run: RunId, device: &DeviceRow) -> bool {
        let last = self.requested.get(&run);
        let is_recent =
            |(when, hellos): &(Instant, u64)| when.elapsed() < REPEAT_AFTER && *hellos == device.hellos;
        if last.is_some_and(is_recent) {
            return false;
        }
        self.requested.insert(run, (Instant::now(), device.hellos));
        true
    }

    /// Returns the query for a run without news for a while. Its last state or delivered bytes may have been lost here or in transit. A
    /// device in a timed window is not queried.
    fn due_query(&mut self, run: &OpenRun, device: &DeviceRow) -> anyhow::Result<Option<Request>> {
        let silence = match self.silences.entry(run.id) {
            Entry::Occupied(known) if known.get().revision == run.revision => known.into_mut(),
            other => {
                let bytes = delivered(&self.store.streams().of_run(run.id)?);
                other.insert_entry(Silence::of(run, bytes));
                return Ok(None);
            }
        };
        // The streams are only read for silent runs: there may be thousands of others.
        if device.running.is_some() || !silence.is_over() {
            return Ok(None);
        }
        let streams = self.store.streams().of_run(run.id)?;
        let bytes = delivered(&streams);
        if bytes != silence.bytes {
            *silence = Silence::of(run, bytes);
            return Ok(None);
        }
        let missing = streams
            .iter()
            .filter(|stream| stream.listed && !stream.is_complete);
        let missing: Vec<StreamName> = missing.map(|stream| stream.name.clone()).collect();
        let is_final = run.phase.is_final();
        if is_final && missing.is_empty() {
            return Ok(None);
        }
        silence.record_query();
        tracing::debug!(run = %run.id, phase = %run.phase, missing = missing.len(), "asking again");
        let streams = if is_final { missing } else { Vec::new() };
        Ok(Some((device.id.clone(), run.id, Command::Resend { streams })))
    }

    /// Fixes the specs of runs with the current estimates, and sends them. A run that cannot be prepared is tried again later.
    fn begin(&mut self, batch: &[(&OpenRun, &DeviceRow)]) -> anyhow::Result<()> {
        let mut prepared = Vec::with_capacity(batch.len());
        for &(open, device) in batch {
            // A run that was removed meanwhile has no row.
            let Some(run) = self.store.runs().get(open.id)? else {
                continue;
            };
            match self.spec_of(&run) {
                Ok(Some(text)) => prepared.push((run, device, text)),
                Ok(None) => {}
                Err(error) => self.complain(run.id, &error),
            }
        }
        let specs: Vec<_> = prepared
            .iter()
            .map(|(run, _, text)| (self.workspace.run(run.id), text.as_slice()))
            .collect();
        let written = write_specs(&specs);
        sync_directory(&self.workspace.runs())?;
        let mut ready = Vec::with_capacity(prepared.len());
        for (new, written) in prepared.into_iter().zip(written) {
            match written {
                Ok(()) => ready.push(new),
                Err(error) => self.complain(new.0.id, &error.into()),
            }
        }
        // A run whose user ended it meanwhile has no number.
        let numbers = self.store.all_or_nothing(|store| {
            let fix = |(run, device, text): &(RunRow, &DeviceRow, Vec<u8>)| {
                let is_fixed = store.runs().fix_spec(run.id, &sha256_hex(text))?;
                is_fixed.then(|| self.command_number(&device.id)).transpose()
            };
            ready.iter().map(fix).collect::<store::Result<Vec<_>>>()
        })?;
        self.publisher.wait_for_capacity(ready.len());
        for ((run, device, spec_json), number) in ready.into_iter().zip(numbers) {
            let Some(number) = number else { continue };
            tracing::info!(run = %run.id, benchmark = run.benchmark, scenario = %run.scenario, mode = %run.mode, "sending");
            self.complained.remove(&run.id);
            self.requested.insert(run.id, (Instant::now(), device.hellos));
            self.send_numbered(&device.id, run.id, &Command::Start { spec_json }, number)?;
        }
        Ok(())
    }

    fn complain(&mut self, run: RunId, error: &anyhow::Error) {
        if self.complained.insert(run) {
            tracing::error!(%run, "cannot send the run, will try again: {error:#}");
        }
    }

    /// Returns the bytes of a run's spec. `None` ends a run that no message can carry.
    fn spec_of(&self, run: &RunRow) -> anyhow::Result<Option<Vec<u8>>> {
        let mut spec = run.draft.spec.clone();
        if !run.draft.is_conf_fixed {
            let past = self.store.runs().recorded_like(&run.draft)?;
            spec.conf.user_conf = run.draft.user_conf(&estimate(&spec, &past));
        }
        let mut text = serde_json::to_vec_pretty(&spec)?;
        text.push(b'\n');
        if text.len() + AROUND_A_SPEC > frame::MAX_BODY {
            let reason = format!("its spec has {} bytes, more than a message can carry", text.len());
            self.store.runs().fail_unsent(run.id, &reason)?;
            return Ok(None);
        }
        Ok(Some(text))
    }

    /// Returns the number of the next command to a device, in a lab with keys.
    fn command_number(&self, device: &DeviceId) -> store::Result<Option<u64>> {
        self.keys
            .as_ref()
            .map(|_| self.store.numbers().next_command(device))
            .transpose()
    }

    fn send(&self, device: &DeviceId, run: RunId, command: &Command) -> anyhow::Result<()> {
        let number = self.command_number(device)?;
        self.send_numbered(device, run, command, number)
    }

    /// Sends requests with numbers that one transaction has made durable.
    fn send_all(&self, requests: &[Request]) -> anyhow::Result<()> {
        if requests.is_empty() {
            return Ok(());
        }
        let numbers = self.store.all_or_nothing(|_| {
            let devices = requests.iter().map(|(device, _, _)| device);
            devices
                .map(|device| self.command_number(device))
                .collect::<store::Result<Vec<_>>>()
        })?;
        self.publisher.wait_for_capacity(requests.len());
        for ((device, run, command), number) in requests.iter().zip(numbers) {
            self.send_numbered(device, *run, command, number)?;
        }
        Ok(())
    }

    fn send_numbered(
        &self,
        device: &DeviceId,
        run: RunId,
        command: &Command,
        number: Option<u64>,
    ) -> anyhow::Result<()> {
        let topic = Topic {
            device: device.clone(),
            leaf: Leaf::Command(run),
        };
        let mut frame = command.to_frame()?;
        if let Some((keys, number)) = self.keys.as_ref().zip(number) {
            frame = keys.sign_command(device, run, number, frame).to_frame()?;
        }
        self.publisher.publish(&topic, frame);
        Ok(())
    }
}
