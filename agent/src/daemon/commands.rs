//! Messages from the coordinator: commands and acknowledgements. A message may arrive twice, late or damaged. No
//! message can end the daemon.

use std::time::Instant;

use regatta_text::escape;
use regatta_types::{
    RunId, StreamName,
    documents::{RunPhase, RunState},
};
use regatta_wire::{
    frame::FrameError,
    message::{Ack, Command, Message as _, StateReport},
    topic::{Leaf, Topic},
};

use super::{
    link::Link,
    run::Run,
    run_dir::{Ending, Job, RunDir},
    service::Service,
    spec_check,
    trust::TrustError,
    window::WindowPolicy,
};
use crate::build_info::ENGINES;

/// Number of rejected runs that are remembered. The limit bounds memory against a malicious coordinator.
const REFUSED: usize = 256;

/// Number of `Examine` commands that may wait for the end of a run.
const QUESTIONS: usize = 16;

impl<L: Link> Service<L> {
    /// Handles a message from the broker.
    pub(super) fn take_message(&mut self, topic: &str, payload: &[u8]) {
        let topic = match Topic::parse(topic) {
            Ok(topic) if topic.device == *self.identity.id() => topic,
            Ok(_) => return tracing::warn!("a message for another device was dropped"),
            Err(e) => return tracing::warn!("a message was dropped: {:#}", anyhow::Error::from(e)),
        };
        match topic.leaf {
            // An empty payload clears a retained command.
            Leaf::Command(_) if payload.is_empty() => {}
            Leaf::Command(run) => match self.trust.open(self.identity.id(), run, payload) {
                Ok(Ok(command)) => self.take_command(run, command),
                Ok(Err(e)) => self.take_broken_command(run, e),
                // QoS 1 may deliver a message twice.
                Err(e @ TrustError::Repeated { number, newest }) => {
                    tracing::debug!("run {run}: a command was dropped: {e}");
                    if number < newest {
                        // A client has replayed the command, or the coordinator has lost its command number. The
                        // inventory states the newest number.
                        self.tell_inventory();
                    }
                }
                Err(e) => tracing::warn!("run {run}: a command was dropped: {:#}", anyhow::Error::from(e)),
            },
            Leaf::Ack(run) => match Ack::from_frame(payload) {
                Ok(ack) => self.take_ack(run, &ack),
                Err(e) => tracing::warn!("run {run}: an acknowledgement was dropped: {e}"),
            },
            _ => tracing::warn!("a message on a topic of our own was dropped"),
        }
    }

    fn take_command(&mut self, run: RunId, command: Command) {
        if self.unreadable.contains_key(&run) {
            self.retry_unreadable();
        }
        match command {
            Command::Start { spec_json } => self.start(run, &spec_json),
            Command::Abort { reason } => self.abort(run, &reason),
            Command::Forget => self.forget(run),
            Command::Release => {
                if let Some(run) = self.runs.get_mut(&run) {
                    run.release();
                }
            }
            Command::Resend { streams } => self.resend(run, &streams),
            // The answer waits until no run is active: it reads about a hundred files, and the message would be sent
            // while LoadGen runs.
            Command::Examine if self.due.examinations.len() < QUESTIONS => {
                self.due.examinations.insert(run);
            }
            Command::Examine => {
                tracing::warn!("a question was dropped: {QUESTIONS} others wait for an answer")
            }
        }
    }

    /// Answers a command that does not parse. It probably comes from a newer coordinator, which must learn why it has
    /// no effect.
    fn take_broken_command(&mut self, run: RunId, error: FrameError) {
        let error = anyhow::Error::from(error).context("the device cannot read the command");
        if self.runs.contains_key(&run) {
            tracing::warn!("run {run}: {error:#}");
        } else {
            self.refuse(run, RunPhase::Failed, format!("{error:#}"));
        }
    }

    fn start(&mut self, id: RunId, spec_json: &[u8]) {
        if self.knows(id) {
            self.due.states.insert(id);
            return;
        }
        if let Err(reason) = self.take_run(id, spec_json) {
            self.refuse(id, RunPhase::Failed, reason);
        }
    }

    fn take_run(&mut self, id: RunId, spec_json: &[u8]) -> Result<(), String> {
        let spec = spec_check::check(spec_json, id, self.identity.id(), ENGINES)
            .map_err(|e| format!("{:#}", anyhow::Error::from(e)))?;
        self.free_space()?;
        let job = Job::queued(self.next_arrival);
        let dir = RunDir::create(&self.runs_dir, id, spec_json, &job)
            .map_err(|e| format!("the device cannot keep the run: {:#}", anyhow::Error::from(e)))?;
        self.next_arrival = self.next_arrival.saturating_add(1);
        tracing::info!(
            "run {id}: queued: {} {} {} with {}",
            spec.benchmark.name,
            spec.scenario,
            spec.mode,
            spec.engine.kind
        );
        let window_policy = WindowPolicy::from(&spec);
        self.runs
            .insert(id, Run::open(id, dir, job, window_policy, &self.storage));
        self.due.states.insert(id);
        Ok(())
    }

    fn abort(&mut self, id: RunId, reason: &str) {
        let start: String = reason.chars().take(500).collect();
        let reason = escape(&start).into_owned();
        if let Some(active) = self.active.as_mut().filter(|active| active.run == id) {
            active.abort(&reason, Instant::now() + self.config.abort_grace);
            return;
        }
        match self.runs.get(&id) {
            Some(run) if run.waits_for_its_start() => {
                if let Some(fetching) = &self.fetching {
                    fetching.cancel_for(id);
                }
                self.end_run(
                    id,
                    Ending {
                        phase: RunPhase::Aborted,
                        reason: Some(reason),
                    },
                );
            }
            Some(_) => {
                self.due.states.insert(id);
            }
            None if self.knows(id) => {
                self.due.states.insert(id);
            }
            // The start command may still arrive. It then finds the run aborted.
            None => self.refuse(id, RunPhase::Aborted, reason),
        }
    }

    /// Publishes a run's state and sends streams again that the coordinator lacks. For an unknown run, the inventory is
    /// published instead.
    fn resend(&mut self, id: RunId, streams: &[StreamName]) {
        if let Some(run) = self.runs.get_mut(&id) {
            run.resend(streams);
        }
        if self.knows(id) {
            self.due.states.insert(id);
        } else {
            self.tell_inventory();
        }
    }

    /// Removes a run that the coordinator has released. Other runs stay.
    fn forget(&mut self, id: RunId) {
        if let Some(run) = self.runs.get(&id) {
            if !run.may_be_removed() {
                tracing::warn!(
                    "run {id}: not forgotten: it is {}, {} and {}",
                    run.phase(),
                    if run.is_delivered() {
                        "delivered"
                    } else {
                        "not wholly delivered"
                    },
                    if run.job.released {
                        "released"
                    } else {
                        "not released"
                    },
                );
                self.due.states.insert(id);
                return;
            }
            if !self.remove_run(id) {
                return;
            }
            tracing::info!("run {id}: forgotten");
        }
        self.refused.retain(|(refused, _)| *refused != id);
        self.clear_state(id);
    }

    /// Removes a run from disk and memory. Returns `false` if the directory cannot be removed.
    pub(super) fn remove_run(&mut self, id: RunId) -> bool {
        if let Some(run) = self.runs.get(&id)
            && let Err(e) = run.dir.remove()
        {
            tracing::error!("run {id}: not forgotten: {:#}", anyhow::Error::from(e));
            return false;
        }
        self.runs.remove(&id);
        self.clear_state(id);
        true
    }

    fn clear_state(&mut self, id: RunId) {
        self.due.states.remove(&id);
        self.due.cleared.insert(id);
    }

    fn take_ack(&mut self, id: RunId, ack: &Ack) {
        let now = Instant::now();
        self.last_heard = Some(now);
        if let Some(run) = self.runs.get_mut(&id)
            && run.acknowledge(ack, now)
        {
            self.due.states.insert(id);
        }
    }

    fn knows(&self, id: RunId) -> bool {
        self.runs.contains_key(&id)
            || self.unreadable.contains_key(&id)
            || self.refused.iter().any(|(refused, _)| *refused == id)
    }

    /// Rejects a run with a reason.
    fn refuse(&mut self, id: RunId, phase: RunPhase, reason: String) {
        tracing::warn!("run {id}: not taken: {reason}");
        if self.refused.len() >= REFUSED {
            self.refused.pop_front();
        }
        self.refused.push_back((
            id,
            RunState {
                phase,
                reason: Some(reason),
                revision: 1,
            },
        ));
        self.due.states.insert(id);
    }

    /// Returns the state report of a rejected run.
    pub(super) fn refused_report(&self, id: RunId) -> Option<StateReport> {
        let (run, state) = self.refused.iter().find(|(refused, _)| *refused == id)?;
        Some(StateReport {
            run: *run,
            state: state.clone(),
            streams: Vec::new(),
        })
    }
}
