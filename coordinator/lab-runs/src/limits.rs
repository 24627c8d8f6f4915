//! Ends runs that reach their limit: the device is requested to abort the run, and a run that it does not abort, or cannot seal, is given
//! up. The time counts
//! while the device is online, by the monotonic clock; an absent device is not the run's failure.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use regatta_types::{
    RunId,
    documents::{RunPhase, end_reason},
};

use regatta_lab_store::{self as store, RunLease, Store};

/// The time for which a device may take to abort a run. An agent kills a process after 5 s, unless it is configured otherwise.
const ABORT_TIME: Duration = Duration::from_secs(120);
/// The spent time that is not in the store yet, at most. A coordinator that is killed loses it, which only keeps runs longer.
const UNSAVED: Duration = Duration::from_secs(5);

/// The times of runs with a limit, since they were last in the store.
#[derive(Debug, Default)]
pub(super) struct RunLimits {
    counted_until: BTreeMap<RunId, Instant>,
}

impl RunLimits {
    /// Counts the time, and ends the runs that have reached their limit. Returns whether it requested the end of any.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(super) fn look(&mut self, store: &Store, now: Instant) -> store::Result<bool> {
        let leases = store.runs().leases()?;
        let online = leases.iter().filter(|lease| lease.is_online);
        let online: BTreeSet<RunId> = online.map(|lease| lease.run).collect();
        self.counted_until.retain(|run, _| online.contains(run));
        let mut has_ended = false;
        for lease in leases.iter().filter(|lease| lease.is_online) {
            let until = self.counted_until.entry(lease.run).or_insert(now);
            let unsaved = now.duration_since(*until);
            let spent = lease.spent.saturating_add(unsaved);
            if unsaved >= UNSAVED {
                store.runs().add_spent_time(lease.run, unsaved)?;
                *until = now;
            }
            has_ended |= end_if_due(lease, spent, store)?;
        }
        Ok(has_ended)
    }
}

fn end_if_due(lease: &RunLease, spent: Duration, store: &Store) -> store::Result<bool> {
    let limit = lease.limit.as_secs();
    if lease.phase.is_final() {
        // Its device could not seal it, and no abort changes that.
        let reason = format!("{} of {limit} s", end_reason::NOT_SEALED_IN_LIMIT);
        return Ok(spent >= lease.limit && store.runs().give_up(lease.run, &reason)?);
    }
    if spent >= lease.limit.saturating_add(ABORT_TIME) {
        let reason = format!("{} of {limit} s", end_reason::LIMIT_IGNORED);
        return store.runs().give_up(lease.run, &reason);
    }
    if spent < lease.limit || lease.is_ending {
        return Ok(false);
    }
    let beginning = match lease.phase {
        RunPhase::Queued | RunPhase::Preparing => end_reason::NOT_STARTED_IN_LIMIT,
        _ => end_reason::LIMIT_REACHED,
    };
    store
        .runs()
        .request_abort(lease.run, &format!("{beginning} of {limit} s"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use regatta_types::{
        DeviceId,
        documents::{EngineKind, RunState},
    };
    use regatta_wire::message::{BoardReadings, Hello};

    use super::*;
    use regatta_lab_store::{RunDraft, examples::example_draft};

    const LIMIT: u64 = 600;

    struct World {
        store: Store,
        draft: RunDraft,
        begin: Instant,
        limits: RunLimits,
    }

    impl World {
        fn new(phase: RunPhase) -> Self {
            let store = Store::open(Path::new(":memory:")).unwrap();
            let public_key = [7; 32];
            let hello = Hello {
                device: DeviceId::of_public_key(&public_key),
                name: "board".to_owned(),
                public_key,
                online: true,
                agent: "0.1.0".to_owned(),
                engines: vec![EngineKind::Null],
                facts_json: b"{}".to_vec(),
                runs: Vec::new(),
            };
            store.devices().record_hello(&hello).unwrap();
            let mut draft = example_draft(hello.device);
            draft.limit_s = Some(LIMIT);
            store.runs().add(&draft).unwrap();
            store.runs().fix_spec(draft.spec.run, "00").unwrap();
            let state = RunState {
                phase,
                reason: None,
                revision: 3,
            };
            store
                .runs()
                .record_state(&draft.spec.device, draft.spec.run, &state)
                .unwrap();
            Self {
                store,
                draft,
                begin: Instant::now(),
                limits: RunLimits::default(),
            }
        }

        fn look(&mut self, seconds: u64) -> bool {
            let now = self.begin + Duration::from_secs(seconds);
            self.limits.look(&self.store, now).unwrap()
        }

        fn row(&self) -> regatta_lab_store::RunRow {
            self.store.runs().get(self.draft.spec.run).unwrap().unwrap()
        }
    }

    #[test]
    fn a_run_is_aborted_at_its_limit_and_lost_when_the_device_ignores_that() {
        let mut world = World::new(RunPhase::Running);
        for seconds in (0..LIMIT).step_by(2) {
            assert!(!world.look(seconds), "at {seconds} s");
        }
        assert!(world.look(LIMIT));
        assert_eq!(
            world.row().abort.as_deref(),
            Some("the run did not end within its limit of 600 s")
        );
        assert!(!world.look(LIMIT + 100), "once");
        assert!(world.look(LIMIT + 120));
        let row = world.row();
        assert!(row.lost);
        assert_eq!(
            row.abandoned.as_deref(),
            Some("the device did not abort the run, which reached its limit of 600 s")
        );
    }

    #[test]
    fn a_run_that_its_device_cannot_seal_ends_at_its_limit() {
        let mut world = World::new(RunPhase::Running);
        world.look(0);
        let run = world.draft.spec.run;
        let device = world.draft.spec.device.clone();
        let failed = |reason: &str, revision| RunState {
            phase: RunPhase::Failed,
            reason: Some(reason.to_owned()),
            revision,
        };
        // Its files are being delivered, which may take longer than the run.
        let state = failed("the engine refused the model", 4);
        world.store.runs().record_state(&device, run, &state).unwrap();
        assert!(!world.look(LIMIT + 1_000));
        let state = failed(
            "the run could not be sealed: run.log cannot be flushed to disk: Input/output error (os error 5)",
            5,
        );
        world.store.runs().record_state(&device, run, &state).unwrap();
        world.limits = RunLimits::default();
        world.look(LIMIT + 1_000);
        assert!(world.look(2 * LIMIT + 1_010));
        let row = world.row();
        assert!(row.lost);
        assert_eq!(
            row.abandoned.as_deref(),
            Some("the device could not seal the run within its limit of 600 s")
        );
    }

    #[test]
    fn neither_absences_nor_restarts_nor_gates_count() {
        let mut world = World::new(RunPhase::Preparing);
        let device = world.draft.spec.device.clone();
        world.look(0);
        world.look(400);
        world.store.devices().mark_offline(&device).unwrap();
        world.look(401);
        world.look(9_000);
        world
            .store
            .devices()
            .record_heartbeat(&device, None, BoardReadings::default())
            .unwrap();
        world.look(9_001);
        assert!(!world.look(9_100), "400 s and 99 s");
        // A new coordinator continues from the store.
        world.limits = RunLimits::default();
        assert!(!world.look(20_000));
        assert!(!world.look(20_100), "599 s");
        assert!(world.look(20_102));
        let reason = world.row().abort;
        assert_eq!(
            reason.as_deref(),
            Some("the run did not start within its limit of 600 s")
        );
    }
}
