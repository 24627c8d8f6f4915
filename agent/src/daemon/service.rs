//! The daemon's event loop. It waits for the events of all components and routes each to the component that owns the
//! affected state. What a component returns goes to the others. The loop itself only owns the link and the order to
//! stop, so no locks are needed.

mod publishing;
mod wakeups;

use std::{
    future::pending,
    io,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use regatta_text::escape;
use regatta_types::RunId;
use regatta_wire::message::Command;
use tokio::{sync::OwnedSemaphorePermit, time::sleep_until};

use self::wakeups::{Wakeup, Wakeups};
use super::{
    announcements::Announcements,
    delivery::{Delivery, DeliveryEvent},
    device::Device,
    executor::{Execution, Executor, ExecutorEvent, step::ExecutionStep, watch::BoardSensors},
    inbox::{CoordinatorMessage, Inbox},
    link::{Link, LinkEvent},
    log_file,
    run_slots::RunSlots,
    runs::{
        events::{RunEvent, RunUpdate},
        queue::{DeliveryProgress, RunQueue},
        run::Run,
    },
    sealer::{SealEvent, Sealer, seal::SealRequest},
    supervisor::Supervisor,
};

/// Time that a stopping daemon waits for the run process and sealing, beyond the run process's grace period.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// Longest reason of an abort, in characters.
const MAX_REASON: usize = 500;

/// The daemon's components and its connection to the broker.
pub(crate) struct Service<L> {
    device: Device,
    inbox: Inbox,
    link: L,
    connected: bool,
    runs: RunQueue,
    executor: Executor,
    sealer: Sealer,
    delivery: Delivery,
    announcements: Announcements,
    sensors: BoardSensors,
    run_slots: RunSlots,
    is_simulated: bool,
    started: Instant,
    /// Time at which a stopping daemon ends, whatever is left to do.
    stop_by: Option<Instant>,
}

/// What the loop waits for.
#[derive(Debug)]
enum ServiceEvent<Receipt> {
    Link(LinkEvent<Receipt>),
    Executor(ExecutorEvent),
    Sealer(SealEvent),
    Delivery(DeliveryEvent),
    Wakeup(Wakeup),
    RunSlot(OwnedSemaphorePermit),
    Deadline,
}

impl<L: Link> Service<L> {
    /// Returns the service for the runs in the queue. `slots` are those of a simulated device.
    ///
    /// # Errors
    /// When the system provides no random numbers.
    pub(crate) fn new(
        device: Device,
        inbox: Inbox,
        runs: RunQueue,
        link: L,
        slots: Option<RunSlots>,
    ) -> io::Result<Self> {
        Ok(Self {
            executor: Executor::new(device.shared_config()),
            sealer: Sealer::new(runs.unsealed()),
            delivery: Delivery::new(device.config().live_bytes_per_second),
            announcements: Announcements::new()?,
            sensors: BoardSensors::open(&device.config().system_root),
            is_simulated: slots.is_some(),
            run_slots: slots.unwrap_or_default(),
            device,
            inbox,
            link,
            connected: false,
            runs,
            started: Instant::now(),
            stop_by: None,
        })
    }

    /// Runs until SIGTERM or SIGINT.
    pub(crate) async fn run(mut self, supervisor: &Supervisor) -> io::Result<()> {
        let mut wakeups = Wakeups::new(
            self.device.config().heartbeat,
            supervisor.watchdog_interval(),
            !self.is_simulated,
        )?;
        supervisor.ready();
        loop {
            let now = Instant::now();
            self.seal_next(now);
            self.start_next_run(now);
            if self.has_stopped(now) {
                break;
            }
            let event = self.next_event(&mut wakeups, now).await;
            if self.handle(event, supervisor).is_break() {
                break;
            }
        }
        supervisor.stopping();
        self.publish_offline().await;
        Ok(())
    }

    async fn next_event(&mut self, wakeups: &mut Wakeups, now: Instant) -> ServiceEvent<L::Receipt> {
        let wants_to_publish = self.connected && self.has_publication(now);
        let deadline = self.deadline(now);
        let has_active_run = self.executor.has_active_run();
        let needs_slot = self.may_start_run() && self.runs.is_start_due(now, self.delivery_progress());
        tokio::select! {
            event = self.executor.next() => ServiceEvent::Executor(event),
            event = self.link.next(wants_to_publish) => ServiceEvent::Link(event),
            event = self.sealer.next() => ServiceEvent::Sealer(event),
            event = self.delivery.next() => ServiceEvent::Delivery(event),
            wakeup = wakeups.next(has_active_run) => ServiceEvent::Wakeup(wakeup),
            slot = self.run_slots.next(needs_slot) => ServiceEvent::RunSlot(slot),
            () = wait_until(deadline) => ServiceEvent::Deadline,
        }
    }

    fn handle(&mut self, event: ServiceEvent<L::Receipt>, supervisor: &Supervisor) -> ControlFlow<()> {
        match event {
            ServiceEvent::Link(event) => return self.handle_link(event),
            ServiceEvent::Executor(event) => {
                let bytes_sent = self.link.bytes_sent();
                let execution = self
                    .executor
                    .handle(event, &self.device, bytes_sent, Instant::now());
                self.route_execution(execution);
            }
            ServiceEvent::Sealer(SealEvent::Flushed(run, on_disk))
            | ServiceEvent::Delivery(DeliveryEvent::Flushed(run, on_disk)) => {
                self.runs.open_for_delivery(run, &on_disk);
            }
            ServiceEvent::Sealer(SealEvent::Sealed(run, sealed)) => {
                let event = self.runs.set_sealed(run, sealed);
                self.route(event);
                let needs_sealing = self.runs.get(run).is_some_and(Run::needs_sealing);
                self.sealer.settle(run, needs_sealing, Instant::now());
            }
            ServiceEvent::Delivery(DeliveryEvent::FlushFailed(run, error)) => {
                self.runs.set_unflushed(run, error)
            }
            ServiceEvent::RunSlot(slot) => self.run_slots.hold(slot),
            ServiceEvent::Delivery(DeliveryEvent::FlushingEnded) => {}
            ServiceEvent::Wakeup(Wakeup::Heartbeat) => {
                if !self.executor.has_active_run() {
                    log_file::limit_size(&self.device.config().state_dir);
                }
                if self.connected {
                    self.announcements.queue_heartbeat();
                }
                let execution = self.executor.check_free_space();
                self.route_execution(execution);
            }
            ServiceEvent::Wakeup(Wakeup::Watchdog) => supervisor.alive(),
            ServiceEvent::Wakeup(Wakeup::CertificateCheck) => self.device.renew_certificate_when_due(),
            ServiceEvent::Wakeup(Wakeup::GpusFound(gpus)) => {
                self.device.add_gpus(gpus);
                self.announcements.queue_hello();
            }
            ServiceEvent::Wakeup(Wakeup::Stop) => self.begin_to_stop(Instant::now()),
            ServiceEvent::Deadline => self.handle_deadline(Instant::now()),
        }
        ControlFlow::Continue(())
    }

    fn handle_link(&mut self, event: LinkEvent<L::Receipt>) -> ControlFlow<()> {
        match event {
            LinkEvent::Connected => {
                tracing::info!("connected to the broker");
                self.connected = true;
                self.announcements.handle_connected(Instant::now());
                self.publish_everything_again();
            }
            LinkEvent::Disconnected => {
                self.connected = false;
                self.announcements.handle_disconnected();
            }
            LinkEvent::Message {
                topic,
                payload,
                receipt,
            } => {
                if let Some(message) = self.inbox.read(&topic, &payload) {
                    self.handle_message(message, Instant::now());
                }
                self.link.settle(receipt);
            }
            LinkEvent::CanPublish => self.publish_next(Instant::now()),
            LinkEvent::Closed => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    fn handle_message(&mut self, message: CoordinatorMessage, now: Instant) {
        match message {
            CoordinatorMessage::Command(run, command) => self.handle_command(run, command, now),
            // The coordinator must learn why the command has no effect.
            CoordinatorMessage::UnreadableCommand(run, error) => {
                let error = anyhow::Error::from(error).context("the device cannot read the command");
                let event = self.runs.refuse(run, format!("{error:#}"));
                self.route(event);
            }
            // The inventory states the newest number.
            CoordinatorMessage::OutdatedCommand => self.answer_with_inventory(now),
            CoordinatorMessage::Acknowledgement(run, ack) => {
                self.delivery.note_acknowledgement(now);
                let event = self.runs.acknowledge(run, &ack, now);
                self.route(event);
            }
        }
    }

    fn handle_command(&mut self, run: RunId, command: Command, now: Instant) {
        let events = self.runs.retry_if_unreadable(run);
        self.route(events);
        match command {
            Command::Start { spec_json } => {
                let events = self.runs.accept(run, &spec_json, self.device.identity().id());
                self.route(events);
            }
            Command::Abort { reason } => {
                let reason = abort_reason(&reason);
                if !self.executor.abort(run, &reason, now) {
                    let event = self.runs.abort(run, reason, now);
                    self.route(event);
                }
            }
            Command::Forget => {
                let event = self.runs.forget(run);
                self.route(event);
            }
            Command::Release => self.runs.release(run),
            Command::Resend { streams } => {
                let event = self.runs.resend(run, &streams);
                self.route([event]);
            }
            Command::StopServer => {
                let event = self.runs.stop_server(run);
                self.route([event]);
            }
            Command::Examine => self.announcements.queue_examination(run),
        }
    }

    /// Routes what the run queue reports.
    fn route(&mut self, events: impl IntoIterator<Item = RunEvent>) {
        for event in events {
            match event {
                RunEvent::StateDue(run) => self.announcements.queue_state(run),
                RunEvent::Removed(run) => self.announcements.queue_cleared_state(run),
                RunEvent::SealingDue(run) => self.sealer.add(run),
                RunEvent::StartDue(start) => {
                    let execution = self.executor.start(start, &self.device);
                    self.route_execution(Some(execution));
                }
                RunEvent::Unknown => self.answer_with_inventory(Instant::now()),
            }
        }
    }

    /// Routes what the executor reports.
    fn route_execution(&mut self, execution: Option<Execution>) {
        let Some(Execution { run, steps }) = execution else {
            return;
        };
        for step in steps {
            match step {
                ExecutionStep::Update(update) => {
                    if matches!(update, RunUpdate::Ended(_)) {
                        self.delivery.end_run();
                    }
                    let event = self.runs.update(run, update, Instant::now());
                    self.route(event);
                }
                ExecutionStep::Activated => {
                    if let Some(run) = self.runs.get(run) {
                        self.delivery.begin_run(run);
                    }
                }
                ExecutionStep::ProcessStarted(process) => {
                    if let Err(e) = self.runs.set_process(run, process) {
                        self.executor.reject_process(e.into());
                    }
                }
                ExecutionStep::LogsEnded => self.delivery.end_live(),
            }
        }
    }

    /// Seals the next run that has ended, but not while a run is active, nor before the last flush of a live run.
    fn seal_next(&mut self, now: Instant) {
        if self.executor.has_active_run() || self.delivery.is_flushing() {
            return;
        }
        let Some(id) = self.sealer.take_next(now) else {
            return;
        };
        match self.runs.begin_sealing(id) {
            Some(run) => self.sealer.start(SealRequest::new(run, &self.device)),
            None => self.sealer.settle(id, false, now),
        }
    }

    /// Returns whether another run may start, apart from the delivery of earlier ones.
    fn may_start_run(&self) -> bool {
        self.executor.is_idle() && self.sealer.is_idle() && self.stop_by.is_none()
    }

    fn delivery_progress(&self) -> DeliveryProgress {
        DeliveryProgress {
            connected: self.connected,
            last_acknowledgement: self.delivery.last_acknowledgement(),
        }
    }

    fn start_next_run(&mut self, now: Instant) {
        if self.may_start_run() && self.run_slots.may_start() {
            let events = self.runs.start_next(now, self.delivery_progress());
            self.route(events);
        }
        if self.executor.is_idle() {
            self.run_slots.release();
        }
    }

    /// Returns the next time at which the loop must act without an event.
    fn deadline(&self, now: Instant) -> Option<Instant> {
        let delivery = self
            .connected
            .then(|| self.delivery.deadline(self.runs.iter(), now));
        let start = self
            .may_start_run()
            .then(|| self.runs.next_start(now, self.delivery_progress()));
        let sealing = self
            .sealer
            .deadline()
            .filter(|_| !self.executor.has_active_run() && !self.delivery.is_flushing());
        let repeats = self.connected && !self.executor.has_active_run();
        let repetition = self.announcements.repetition().filter(|_| repeats);
        [
            delivery.flatten(),
            start.flatten(),
            self.executor.deadline(),
            repetition,
            sealing,
            self.stop_by,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.delivery.handle_deadline(self.runs.iter_mut(), now);
        self.executor.handle_deadline(now);
        // Not while a run is active, because the messages would fall into its measurement window.
        if self.connected && !self.executor.has_active_run() && self.announcements.repeat_hello(now) {
            let events = self.runs.retry_unreadable();
            self.route(events);
        }
    }

    fn begin_to_stop(&mut self, now: Instant) {
        if self.stop_by.is_none() {
            tracing::info!("stopping");
            self.stop_by = Some(now + self.device.config().abort_grace + STOP_PATIENCE);
            self.executor.stop(now);
        }
    }

    fn has_stopped(&self, now: Instant) -> bool {
        let at_rest = !self.executor.has_active_run() && self.sealer.is_idle();
        let published = !self.connected || !self.announcements.has_states();
        self.stop_by
            .is_some_and(|stop_by| (at_rest && published) || now >= stop_by)
    }
}

async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline.into()).await,
        None => pending().await,
    }
}

/// Returns the start of the coordinator's reason, safe for logs and JSON.
fn abort_reason(reason: &str) -> String {
    let start: String = reason.chars().take(MAX_REASON).collect();
    escape(&start).into_owned()
}
