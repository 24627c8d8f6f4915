//! A property of the spool on a disk that loses power at any flush: a run that was created is there after the restart, a state that was
//! published is never taken back, and every run can still be sealed and delivered completely.

use std::{fs, path::PathBuf, sync::Arc, time::Instant};

use proptest::prelude::*;
use regatta_test_support::modelled_disk::{self, ModelledDisk, Survival};
use regatta_types::{
    RunId, StreamName,
    documents::{RunPhase, RunState},
};
use regatta_wire::message::{Ack, StreamVerdict};
use sha2::{Digest as _, Sha256};

use super::{
    job::{Ending, Job},
    recovery::{Recovered, recover_run},
    run::Run,
    run_dir::RunDir,
    sealed::{EVIDENCE, Sealed, SealedStream},
    storage::Storage,
    window_policy::WindowPolicy,
};
use crate::daemon::durable::Reserve;

/// The file that the run process writes, and the one that sealing adds.
const LOG: &str = "log";
const STREAMS: [&str; 2] = [LOG, EVIDENCE];

#[derive(Debug, Clone)]
enum Action {
    /// The run enters the next phase before its end.
    Advance,
    /// The run process ends.
    End { succeeds: bool },
    /// The sealer flushes and hashes all files.
    Seal,
    /// The coordinator has a stream.
    Acknowledge { stream: usize },
    /// The coordinator releases the run.
    Release,
    /// The power fails at an event during the next action, or after it.
    PowerCut { events: usize, survival: Survival },
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    // A write of the job replaces the file atomically, so no part of it is ever torn. Torn journals have their own test.
    let survival = prop_oneof![Just(Survival::Flushed), Just(Survival::All)];
    let action = prop_oneof![
        3 => Just(Action::Advance),
        2 => any::<bool>().prop_map(|succeeds| Action::End { succeeds }),
        2 => Just(Action::Seal),
        4 => (0..2_usize).prop_map(|stream| Action::Acknowledge { stream }),
        1 => Just(Action::Release),
        4 => (0..8_usize, survival).prop_map(|(events, survival)| Action::PowerCut { events, survival }),
    ];
    prop::collection::vec(action, 1..30)
}

/// A device with one run.
struct DeviceUnderTest {
    _directory: tempfile::TempDir,
    runs: PathBuf,
    storage: Storage,
    disk: Arc<ModelledDisk>,
    id: RunId,
    run: Run,
    /// The newest state that the device has published.
    published: RunState,
    /// Whether the published list of files was complete.
    is_listed: bool,
}

impl DeviceUnderTest {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let runs = directory.path().join("runs");
        fs::create_dir(&runs).unwrap();
        let storage = Storage {
            window_chunks: 4,
            reserve: Reserve::new(directory.path().join("reserve")),
        };
        let disk = ModelledDisk::new(runs.clone(), None);
        let id = RunId::now();
        let job = Job::queued(0);
        let published = job.state.clone();
        let dir = RunDir::create(&runs, id, b"{}", &job).unwrap();
        Self {
            _directory: directory,
            run: Run::open(id, dir, job, WindowPolicy::default(), &storage),
            runs,
            storage,
            disk,
            id,
            published,
            is_listed: false,
        }
    }

    fn perform(&mut self, action: &Action) {
        match action {
            Action::Advance => {
                let next = match self.run.phase() {
                    RunPhase::Queued => RunPhase::Preparing,
                    RunPhase::Preparing => RunPhase::Ready,
                    RunPhase::Ready => RunPhase::Running,
                    _ => return,
                };
                if self.run.job().ending.is_none() {
                    self.run.enter(next, None);
                }
            }
            Action::End { succeeds } => self.end(*succeeds),
            Action::Seal => self.seal(),
            Action::Acknowledge { stream } => self.acknowledge(*stream),
            Action::Release => {
                if self.run.is_delivered() {
                    self.run.release();
                }
            }
            Action::PowerCut { .. } => {}
        }
    }

    fn end(&mut self, succeeds: bool) {
        if self.run.phase().is_final() || self.run.job().ending.is_some() {
            return;
        }
        fs::write(self.run.dir().files().join(LOG), "the results").unwrap();
        self.run
            .end(match succeeds && self.run.phase() == RunPhase::Running {
                true => Ending {
                    phase: RunPhase::Draining,
                    reason: None,
                },
                false => Ending::failed("for this test".to_owned()),
            });
    }

    fn seal(&mut self) {
        if !self.run.needs_sealing() {
            return;
        }
        let files = self.run.dir().files();
        fs::write(files.join(EVIDENCE), "{}").unwrap();
        for name in STREAMS {
            let path = files.join(name);
            // A power cut may have lost the log before it was flushed.
            if path.exists() {
                modelled_disk::flush(&path);
            }
        }
        modelled_disk::flush(&files);
        let (streams, _) = self.run.dir().streams().unwrap();
        let sealed = streams.into_iter().map(|name| {
            let bytes = fs::read(files.join(name.as_str())).unwrap();
            SealedStream {
                name,
                length: bytes.len() as u64,
                sha256: Sha256::digest(bytes).into(),
            }
        });
        self.run.set_sealed(Sealed {
            streams: sealed.collect(),
            unread: Vec::new(),
            all_hashed: true,
            incomplete: None,
        });
    }

    fn acknowledge(&mut self, stream: usize) {
        let name: StreamName = STREAMS[stream].parse().unwrap();
        if !self.run.job().sealed || self.run.delivery().sha256(&name).is_none() {
            return;
        }
        let length = fs::metadata(self.run.dir().files().join(name.as_str()))
            .unwrap()
            .len();
        let ack = Ack {
            stream: name,
            committed: length,
            verdict: Some(StreamVerdict::Equal),
        };
        self.run.acknowledge(&ack, Instant::now());
    }

    /// Publishes the run's state, as the daemon does after every action.
    fn publish(&mut self) {
        let report = self.run.report();
        self.published = report.state;
        self.is_listed = !report.streams.is_empty();
    }

    /// Starts the daemon again and checks that nothing published is lost.
    fn restart(&mut self, survival: Survival) -> Result<(), TestCaseError> {
        self.disk.restart(survival);
        let found = RunDir::all(&self.runs).unwrap();
        prop_assert_eq!(found.len(), 1, "the created run is lost");
        let (id, dir) = found.into_iter().next().unwrap();
        prop_assert_eq!(id, self.id);
        let Recovered::Run(run) = recover_run(id, dir, &self.storage) else {
            return Err(TestCaseError::fail("the run cannot be recovered"));
        };
        self.run = *run;
        let state = &self.run.report().state;
        prop_assert!(
            state.revision >= self.published.revision,
            "{state:?} after {:?}",
            self.published
        );
        if self.is_listed {
            prop_assert!(self.run.job().sealed, "a published list of files is lost");
            // The new state may follow the published one, but does not contradict it.
            prop_assert!(
                self.published.phase.may_become(state.phase),
                "{state:?} after {:?}",
                self.published
            );
        }
        if self.published.phase == RunPhase::Done {
            prop_assert_eq!(state.phase, RunPhase::Done);
            prop_assert!(
                self.run.is_delivered(),
                "a delivered run is not delivered any more"
            );
        }
        Ok(())
    }

    /// Ends, seals and delivers the run without faults.
    fn drain(&mut self) -> Result<(), TestCaseError> {
        self.end(true);
        self.seal();
        for stream in 0..STREAMS.len() {
            self.acknowledge(stream);
        }
        prop_assert!(self.run.phase().is_final(), "{:?}", self.run.phase());
        prop_assert!(self.run.is_delivered(), "{:?}", self.run.job());
        self.run.release();
        prop_assert!(self.run.may_be_removed());
        self.run.dir().remove().unwrap();
        prop_assert!(RunDir::all(&self.runs).unwrap().is_empty());
        Ok(())
    }
}

proptest! {
    #[test]
    fn a_power_cut_between_any_two_flushes_loses_no_published_state(actions in actions()) {
        let mut device = DeviceUnderTest::new();
        let mut survival = None;
        for action in &actions {
            if let Action::PowerCut { events, survival: what } = action {
                device.disk.cut_power_after(*events);
                survival = Some(*what);
                continue;
            }
            device.perform(action);
            // A device whose power was cut during the action has published nothing.
            let is_cut = survival.is_some() && device.disk.event();
            match survival.filter(|_| is_cut) {
                Some(survives) => {
                    survival = None;
                    device.restart(survives)?;
                }
                None => device.publish(),
            }
        }
        if let Some(survives) = survival {
            device.disk.cut_power();
            device.restart(survives)?;
        }
        device.drain()?;
    }
}
