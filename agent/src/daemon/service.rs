//! The daemon's event loop. It waits for the link, the run process, the sealing thread, timers and stop signals, and
//! passes each event to its module. The loop owns all state, so no locks are needed.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    future::pending,
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use regatta_board::FactsReader;
use regatta_types::{
    RunId,
    documents::{GpuFacts, RunState},
};
use regatta_wire::{
    message::{Hello, Inventory, Message as _},
    topic::{Leaf, Topic},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::{JoinHandle, spawn_blocking},
    time::{Interval, MissedTickBehavior, interval, sleep_until, timeout},
};

use super::{
    active::{Active, RunNews},
    fetching::{FetchNews, Fetching},
    inventory,
    link::{Link, LinkEvent, Publication},
    live_files::{LiveFiles, live_news},
    pace::Pace,
    run::{Run, Storage},
    run_dir::RunDir,
    sealing_thread::{Sealing, seal_news},
    supervisor::Supervisor,
    trust::Trust,
};
use crate::{
    build_info::{AGENT_VERSION, ENGINES},
    config::AgentConfig,
    enrolment, gpus,
    identity::DeviceIdentity,
};

/// Time that a stopping daemon waits for the run process and sealing, beyond the run process's grace period.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// Time that a stopping daemon waits until it can publish its farewell.
const FAREWELL_PATIENCE: Duration = Duration::from_secs(1);

/// Interval between checks of the device certificate's expiry.
const CERTIFICATE_LOOK: Duration = Duration::from_secs(24 * 3600);

/// The daemon's state.
pub(crate) struct Service<L> {
    pub(super) config: AgentConfig,
    pub(super) identity: Arc<DeviceIdentity>,
    pub(super) trust: Trust,
    pub(super) facts: FactsReader,
    pub(super) runs_dir: PathBuf,
    pub(super) storage: Storage,
    pub(super) link: L,
    pub(super) connected: bool,
    pub(super) runs: BTreeMap<RunId, Run>,
    /// Runs whose state could not be read at the start. The daemon retries them.
    pub(super) unreadable: BTreeMap<RunId, RunDir>,
    /// Random number of this process.
    pub(super) session: u64,
    /// Number of inventories so far, and the time of the last.
    pub(super) inventories: u32,
    pub(super) last_inventory: Option<Instant>,
    /// Time to repeat the hello and the inventory.
    pub(super) repeat_at: Option<Instant>,
    /// Rejected runs, newest last. Their states are only kept in memory and at the broker.
    pub(super) refused: VecDeque<(RunId, RunState)>,
    pub(super) next_arrival: u64,
    pub(super) active: Option<Active>,
    /// Asset download for the next run.
    pub(super) fetching: Option<Fetching>,
    pub(super) to_seal: VecDeque<RunId>,
    pub(super) sealing: Option<Sealing>,
    pub(super) due: Due,
    pub(super) started: Instant,
    pub(super) heartbeats: u64,
    /// Time when a run last ended, and when the last acknowledgement arrived. The next run's start depends on both.
    pub(super) last_ended: Option<Instant>,
    pub(super) last_heard: Option<Instant>,
    /// Growing files of the active run with live delivery.
    pub(super) live: Option<LiveFiles>,
    /// Rate limit for the logs of a live run.
    pub(super) live_pace: Pace,
    pub(super) stop_by: Option<Instant>,
}

/// Publications that are due.
#[derive(Debug, Default)]
pub(super) struct Due {
    pub(super) hello: bool,
    /// Pages of the inventory.
    pub(super) inventory: VecDeque<Inventory>,
    pub(super) heartbeat: bool,
    pub(super) states: BTreeSet<RunId>,
    /// Ids of pending `Examine` commands.
    pub(super) examinations: BTreeSet<RunId>,
    /// Runs whose retained state must be cleared.
    pub(super) cleared: BTreeSet<RunId>,
}

impl<L: Link> Service<L> {
    /// Runs until SIGTERM or SIGINT.
    pub(crate) async fn run(mut self, supervisor: &Supervisor) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut heartbeat = interval(self.config.heartbeat);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut watchdog = supervisor.watchdog_interval().map(interval);
        supervisor.ready();
        let mut certificate = interval(CERTIFICATE_LOOK);
        let mut gpus = Some(spawn_blocking(gpus::probe));
        loop {
            let now = Instant::now();
            self.go_on(now);
            if self.has_stopped(now) {
                break;
            }
            let wants_to_publish = self.connected && self.has_publication(now);
            let deadline = self.deadline(now);
            let is_idle = self.active.is_none();
            tokio::select! {
                news = run_news(&mut self.active) => self.take_run_news(news),
                event = self.link.next(wants_to_publish) => if self.take_link_event(event).is_break() { break },
                news = fetch_news(&mut self.fetching) => self.take_fetch_news(news),
                news = seal_news(&mut self.sealing) => self.take_seal_news(news),
                news = live_news(&mut self.live) => self.take_live_news(news),
                found = once(&mut gpus) => self.take_gpus(found),
                _ = heartbeat.tick() => {
                    self.due.heartbeat = self.connected;
                    self.watch_free_space();
                }
                () = tick(&mut watchdog) => supervisor.alive(),
                () = wait_until(deadline) => self.take_time(Instant::now()),
                _ = certificate.tick(), if is_idle => self.look_at_certificate(),
                _ = terminate.recv() => self.begin_to_stop(),
                _ = interrupt.recv() => self.begin_to_stop(),
            }
        }
        supervisor.stopping();
        self.take_leave().await;
        Ok(())
    }

    /// Starts sealing and the next run, where possible.
    fn go_on(&mut self, now: Instant) {
        self.seal_next();
        if self.stop_by.is_none() {
            self.start_next_run(now);
        }
    }

    fn take_link_event(&mut self, event: LinkEvent<L::Receipt>) -> std::ops::ControlFlow<()> {
        match event {
            LinkEvent::Connected => {
                tracing::info!("connected to the broker");
                self.connected = true;
                self.repeat_at = Some(Instant::now() + inventory::REPEAT_FIRST);
                self.publish_everything_again();
            }
            LinkEvent::Disconnected => {
                self.connected = false;
                self.due.heartbeat = false;
            }
            LinkEvent::Message {
                topic,
                payload,
                receipt,
            } => {
                self.take_message(&topic, &payload);
                self.link.settle(receipt);
            }
            LinkEvent::CanPublish => self.publish_next(Instant::now()),
            LinkEvent::Closed => return std::ops::ControlFlow::Break(()),
        }
        std::ops::ControlFlow::Continue(())
    }

    /// Returns the next time at which the loop must act without an event.
    fn deadline(&self, now: Instant) -> Option<Instant> {
        let delivery = self.delivery_deadline(now);
        let process = self.active.as_ref().and_then(Active::deadline);
        let start = self.next_start(now);
        let live = self.live.as_ref().filter(|_| self.connected);
        let pace = self.live_pace.free_at().filter(|at| live.is_some() && *at > now);
        let live = live.and_then(LiveFiles::next_look);
        let repetition = self.repeat_at.filter(|_| self.connected && self.active.is_none());
        [delivery, process, start, live, pace, repetition, self.stop_by]
            .into_iter()
            .flatten()
            .min()
    }

    /// Adds the GPUs that CUDA found to the facts and publishes them.
    fn take_gpus(&mut self, found: Vec<GpuFacts>) {
        if !found.is_empty() {
            self.facts = self.facts.clone().with_gpus(found);
            self.due.hello = self.connected;
        }
    }

    fn take_time(&mut self, now: Instant) {
        self.deliver_on_time(now);
        if let Some(active) = &mut self.active {
            active.on_time(now);
        }
        self.look_at_live_files(now);
        self.repeat_hello(now);
    }

    /// Renews the device's certificate when it is due, on a separate thread because renewal waits for the coordinator.
    fn look_at_certificate(&self) {
        let (state_dir, identity) = (self.config.state_dir.clone(), Arc::clone(&self.identity));
        let coordinator = self.config.coordinator.clone();
        let look = move || enrolment::renew_when_due(&state_dir, coordinator.as_deref(), &identity);
        if let Err(e) = std::thread::Builder::new().name("renewal".to_owned()).spawn(look) {
            tracing::warn!("the certificate could not be looked at: {e}");
        }
    }

    fn begin_to_stop(&mut self) {
        if self.stop_by.is_some() {
            return;
        }
        tracing::info!("stopping");
        let now = Instant::now();
        self.stop_by = Some(now + self.config.abort_grace + STOP_PATIENCE);
        if let Some(fetching) = &self.fetching {
            // Downloaded data is kept. The run continues when the daemon restarts.
            fetching.cancel();
        }
        if let Some(active) = &mut self.active {
            active.interrupt(
                "interrupted: the agent was stopped",
                now + self.config.abort_grace,
            );
        }
    }

    fn has_stopped(&self, now: Instant) -> bool {
        let at_rest = self.active.is_none() && self.sealing.is_none() && self.to_seal.is_empty();
        let told = !self.connected || self.due.states.is_empty();
        self.stop_by
            .is_some_and(|stop_by| (at_rest && told) || now >= stop_by)
    }

    /// Publishes that the device goes offline, so that the coordinator does not have to wait for the last will.
    async fn take_leave(&mut self) {
        if self.connected {
            let room = async {
                while !matches!(
                    self.link.next(true).await,
                    LinkEvent::CanPublish | LinkEvent::Closed
                ) {}
            };
            if timeout(FAREWELL_PATIENCE, room).await.is_ok() {
                let farewell = hello(
                    &self.config,
                    &self.identity,
                    &self.facts,
                    self.known_runs(),
                    false,
                );
                self.link.publish(farewell);
            }
        }
        self.link.close().await;
    }

    /// Returns the ids of all runs on the device, including unreadable and rejected ones.
    pub(super) fn known_runs(&self) -> Vec<RunId> {
        self.runs
            .keys()
            .chain(self.unreadable.keys())
            .copied()
            .chain(self.refused.iter().map(|(run, _)| *run))
            .collect()
    }

    /// Returns a topic of this device.
    pub(super) fn topic(&self, leaf: Leaf) -> String {
        Topic {
            device: self.identity.id().clone(),
            leaf,
        }
        .to_string()
    }
}

/// Returns the retained hello. `online` is `false` in the last will and in the farewell.
pub(crate) fn hello(
    config: &AgentConfig,
    identity: &DeviceIdentity,
    facts: &FactsReader,
    runs: Vec<RunId>,
    online: bool,
) -> Publication {
    let mut hello = Hello {
        device: identity.id().clone(),
        name: config.name.clone(),
        public_key: identity.public_key(),
        online,
        agent: AGENT_VERSION.to_owned(),
        engines: ENGINES.to_vec(),
        facts_json: serde_json::to_vec(&facts.read()).unwrap_or_default(),
        runs,
    };
    // The hello lists as many of the newest runs as fit. The inventory lists all of them.
    let payload = loop {
        match hello.to_frame() {
            Ok(payload) => break payload,
            Err(e) if hello.runs.is_empty() => {
                tracing::error!("the hello is too large: {e}");
                break Vec::new();
            }
            Err(_) => drop(hello.runs.drain(..hello.runs.len().div_ceil(2))),
        }
    };
    let topic = Topic {
        device: identity.id().clone(),
        leaf: Leaf::Hello,
    }
    .to_string();
    Publication {
        topic,
        payload,
        retain: true,
        at_least_once: true,
    }
}

async fn run_news(active: &mut Option<Active>) -> RunNews {
    match active {
        Some(active) => active.next().await,
        None => pending().await,
    }
}

async fn fetch_news(fetching: &mut Option<Fetching>) -> FetchNews {
    match fetching {
        Some(fetching) => fetching.next().await,
        None => pending().await,
    }
}

/// Waits for a task and returns its result once. Returns the default if the task panicked.
async fn once<T: Default>(task: &mut Option<JoinHandle<T>>) -> T {
    match task {
        Some(running) => {
            let found = running.await.unwrap_or_default();
            *task = None;
            found
        }
        None => pending().await,
    }
}

async fn tick(interval: &mut Option<Interval>) {
    match interval {
        Some(interval) => {
            interval.tick().await;
        }
        None => pending().await,
    }
}

async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline.into()).await,
        None => pending().await,
    }
}
