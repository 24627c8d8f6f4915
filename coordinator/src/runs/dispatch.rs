//! Dispatch: sends runs to their devices and asks again until they answer. Everything that it needs to know stands in
//! the store; what it remembers by itself is only when it last asked.
//!
//! One run after the other goes to a device: the next run's rates are estimated from the last one's results.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use regatta_rules::{DeviceId, RunId};
use regatta_wire::{
    frame,
    message::{Command, Message as _},
    topic::{Leaf, Topic},
};

use super::estimate::estimate;
use crate::{
    daemon::Bell,
    hex::{hex, sha256},
    keys::Keys,
    link::Post,
    store::{DeviceRow, RunRow, Store},
    workspace::{Workspace, write_durably},
};

/// How often the store is looked at without a ring: commands of other processes change it silently.
const PAUSE: Duration = Duration::from_millis(200);
/// How often it is looked through although nothing changed: for what is to be asked again.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Time between two askings of the same thing.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// Bytes that a command and its signature take beside the spec, at most.
const AROUND_A_SPEC: usize = 256;
/// The series of numbers that commands carry.
const COMMANDS: &str = "commands";

/// Starts the dispatcher. It ends when the bell is taken down.
///
/// # Errors
/// When the store cannot be opened or the thread not started.
pub(crate) fn start(
    workspace: &Workspace,
    keys: Option<Arc<Keys>>,
    post: impl Post + 'static,
    bell: Bell,
) -> anyhow::Result<JoinHandle<()>> {
    let dispatcher = Dispatcher {
        workspace: workspace.clone(),
        store: Store::open(&workspace.database())?,
        keys,
        post: Box::new(post),
        asked: BTreeMap::new(),
        complained: BTreeSet::new(),
    };
    thread::Builder::new()
        .name("dispatch".to_owned())
        .spawn(move || dispatcher.run(&bell))
        .context("cannot start the dispatcher's thread")
}

struct Dispatcher {
    workspace: Workspace,
    store: Store,
    /// What commands are signed with, in a lab with keys.
    keys: Option<Arc<Keys>>,
    post: Box<dyn Post>,
    /// When a run's device was last asked something, and how often it had said hello by then.
    asked: BTreeMap<RunId, (Instant, u64)>,
    /// Runs that could not be prepared: said once, tried again.
    complained: BTreeSet<RunId>,
}

impl Dispatcher {
    fn run(mut self, bell: &Bell) {
        let mut heard = bell.count();
        let mut version = None;
        let mut looked = Instant::now();
        while let Some(count) = bell.wait(heard, PAUSE) {
            let now_version = self.store.data_version().ok();
            if count == heard && now_version == version && looked.elapsed() < LOOK_AGAIN {
                continue;
            }
            (heard, version, looked) = (count, now_version, Instant::now());
            if let Err(error) = self.look() {
                tracing::error!("dispatch: {error:#}");
            }
        }
    }

    fn look(&mut self) -> anyhow::Result<()> {
        let devices = self.store.devices()?;
        let open = self.store.open_runs()?;
        self.asked.retain(|id, _| open.iter().any(|run| run.id == *id));
        for device in devices.iter().filter(|device| device.online) {
            let mine: Vec<&RunRow> = open.iter().filter(|run| run.device == device.id).collect();
            for run in mine.iter().filter(|run| run.spec_sha256.is_some()) {
                self.ask(run, device)?;
            }
            if let Some(next) = mine.first()
                && mine.iter().all(|run| run.spec_sha256.is_none())
            {
                self.begin(next, device);
            }
        }
        for (id, device) in self.store.examinations_to_ask()? {
            self.send(&device, id, &Command::Examine)?;
            self.store.examination_is_sent(id)?;
        }
        for (id, device) in self.store.refused_examinations()? {
            self.send(&device, id, &Command::Forget)?;
            self.store.refused_examination_is_told(id)?;
        }
        let kept_until = jiff::Timestamp::now().saturating_sub(self.workspace.config().keep_on_device)?;
        for (run, device) in self.store.runs_to_forget(&kept_until.to_string())? {
            self.send(&device, run, &Command::Forget)?;
            self.store.told_to_forget(run, true)?;
        }
        Ok(())
    }

    /// Asks a device for what it has not answered yet.
    fn ask(&mut self, run: &RunRow, device: &DeviceRow) -> anyhow::Result<()> {
        let wanted_end = run.abort.as_ref().filter(|_| !run.state.phase.is_final());
        if run.known && wanted_end.is_none() {
            return Ok(());
        }
        let asked = self.asked.get(&run.id);
        if asked.is_some_and(|(when, hellos)| when.elapsed() < ASK_AGAIN && *hellos == device.hellos) {
            return Ok(());
        }
        self.asked.insert(run.id, (Instant::now(), device.hellos));
        match wanted_end {
            Some(reason) => self.send(
                &device.id,
                run.id,
                &Command::Abort {
                    reason: reason.clone(),
                },
            ),
            None => {
                let spec_json = fs::read(self.workspace.run(run.id).spec()).context("the run's spec")?;
                self.send(&device.id, run.id, &Command::Start { spec_json })
            }
        }
    }

    /// Fixes a run's spec with the rates known by now, and sends it.
    fn begin(&mut self, run: &RunRow, device: &DeviceRow) {
        match self.fix_spec(run) {
            Ok(Some(fixed)) => {
                self.complained.remove(&run.id);
                if let Err(error) = self.ask(&fixed, device) {
                    tracing::error!(run = %run.id, "cannot send the run: {error:#}");
                }
            }
            Ok(None) => {}
            Err(error) => {
                if self.complained.insert(run.id) {
                    tracing::error!(run = %run.id, "cannot prepare the run, will try again: {error:#}");
                }
            }
        }
    }

    fn fix_spec(&self, run: &RunRow) -> anyhow::Result<Option<RunRow>> {
        let past = self.store.recorded_runs_like(&run.draft)?;
        let mut spec = run.draft.spec.clone();
        // An audit repeats a run to the letter.
        if spec.audit.is_none() {
            spec.conf.user_conf = run.draft.user_conf(&estimate(&spec, &past));
        }
        let mut text = serde_json::to_vec_pretty(&spec)?;
        text.push(b'\n');
        if text.len() + AROUND_A_SPEC > frame::MAX_BODY {
            let reason = format!("its spec has {} bytes, more than a message can carry", text.len());
            self.store.run_cannot_be_sent(run.id, &reason)?;
            return Ok(None);
        }
        let dir = self.workspace.run(run.id);
        fs::create_dir_all(dir.path())?;
        write_durably(&dir.spec(), &text)?;
        crate::workspace::sync_directory(&self.workspace.runs())?;
        if !self.store.fix_spec(run.id, &hex(&sha256(&text)))? {
            return Ok(None);
        }
        tracing::info!(run = %run.id, benchmark = run.benchmark, scenario = %run.scenario, mode = %run.mode, "sending");
        Ok(self.store.run(run.id)?)
    }

    fn send(&self, device: &DeviceId, run: RunId, command: &Command) -> anyhow::Result<()> {
        let topic = Topic {
            device: device.clone(),
            leaf: Leaf::Command(run),
        };
        let mut frame = command.to_frame()?;
        if let Some(keys) = &self.keys {
            let number = self.store.next_number(COMMANDS)?;
            frame = keys.sign_command(device, run, number, frame).to_frame()?;
        }
        self.post.post(&topic, frame);
        Ok(())
    }
}
