//! Fixtures of tests, also of other packages (feature `fixtures`): a draft and a record for tests that do not depend on their content, and a
//! full database.

#![expect(clippy::unwrap_used, reason = "a fixture fails its test")]

use regatta_types::{
    DeviceId, Mode, RunId, Scenario,
    benchmark::Benchmark,
    documents::{
        ConfTexts, Delivery, DeliveryProof, Document as _, EngineKind, EngineSpec, Judgement, LoadgenChoice,
        Record, RunLength, RunPhase, RunSpec, RunState, RunTask,
    },
};

use super::{RunDraft, RunOutcome, RunRow, Store};

/// Creates a performance run of the bundled benchmark on a device.
pub fn example_draft(device: DeviceId) -> RunDraft {
    let benchmark = Benchmark::from_toml(include_str!("../../../configs/benchmarks/digits.toml")).unwrap();
    let mut draft = RunDraft {
        spec: RunSpec {
            schema: RunSpec::schema_with(None, None, RunTask::Measurement),
            run: RunId::now(),
            device,
            created: super::now(),
            round: "v6.1".to_owned(),
            scenario: Scenario::Offline,
            mode: Mode::PerformanceOnly,
            engine: EngineSpec {
                kind: EngineKind::Null,
                settings: Default::default(),
            },
            loadgen: LoadgenChoice::Native,
            length: RunLength::Full,
            conf: ConfTexts {
                mlperf_conf: "*.*.min_duration = 600000\n".to_owned(),
                user_conf: String::new(),
                audit_config: None,
            },
            delivery: Delivery::After,
            audit: None,
            system: None,
            state: None,
            gate: None,
            task: RunTask::Measurement,
            assets: None,
            benchmark,
        },
        guesses: Default::default(),
        user_settings: Default::default(),
        is_conf_fixed: false,
        forced: false,
        limit_s: None,
    };
    draft.spec.conf.user_conf = draft.user_conf(&Default::default());
    draft
}

/// Creates the row of a run that was recorded as VALID, complete and signed.
pub fn example_row(draft: RunDraft) -> RunRow {
    let spec = &draft.spec;
    RunRow {
        id: spec.run,
        device: spec.device.clone(),
        device_name: None,
        benchmark: spec.benchmark.name.clone(),
        scenario: spec.scenario,
        mode: spec.mode,
        draft,
        spec_sha256: Some(String::new()),
        known: true,
        state: RunState {
            phase: RunPhase::Done,
            reason: None,
            revision: 1,
        },
        started: None,
        abort: None,
        abandoned: None,
        pending_abort: None,
        lost: false,
        recorded: Some(String::new()),
        outcome: Some(RunOutcome {
            judgement: Judgement {
                valid: Some(true),
                ..Judgement::default()
            },
            complete: true,
            signed: Some(true),
            ..RunOutcome::default()
        }),
        campaign_cell: None,
        note: None,
    }
}

/// Creates a record of a run without any file.
pub fn example_record(run: &RunRow, state: &RunState) -> Record {
    Record {
        schema: Record::SCHEMA,
        run: run.id,
        device: run.device.clone(),
        device_name: String::new(),
        coordinator: String::new(),
        written: "2026-01-01T00:00:00Z".to_owned(),
        started: None,
        spec_sha256: "00".to_owned(),
        evidence_sha256: None,
        evidence_signature_valid: None,
        state: state.clone(),
        delivery: DeliveryProof {
            complete: false,
            bytes: 0,
            streams: Vec::new(),
        },
        judgement: None,
        accuracy: None,
        not_judged: Vec::new(),
        contradictions: Vec::new(),
        warnings: Vec::new(),
        window: None,
        audit: None,
    }
}

impl Store {
    /// Lets the database of this connection get no further page, as on a full disk, or ends that.
    pub fn set_full(&self, is_full: bool) {
        let set = |pages: u32| {
            let pragma = format!("PRAGMA max_page_count = {pages}");
            self.connection.query_row(&pragma, [], |_| Ok(())).unwrap();
        };
        if !is_full {
            return set(u32::MAX - 1);
        }
        self.connection
            .execute_batch("CREATE TABLE IF NOT EXISTS filler (content BLOB)")
            .unwrap();
        // SQLite never sets less than the database has.
        set(1);
        let fill = || {
            self.connection
                .execute("INSERT INTO filler VALUES (zeroblob(2000))", [])
        };
        let error = std::iter::repeat_with(fill)
            .find_map(|filled| filled.err())
            .unwrap();
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DiskFull));
    }
}
