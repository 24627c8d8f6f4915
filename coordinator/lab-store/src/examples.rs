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
    /// Lets the database refuse new and changed rows of a table that meet a condition on `NEW`. `effect` is that on an SQLite transaction:
    /// FAIL, ABORT or ROLLBACK.
    pub fn refuse(&self, table: &str, condition: &str, effect: &str) {
        for event in ["INSERT", "UPDATE"] {
            let statements = if self.database.sqlite().is_some() {
                format!(
                    "CREATE TRIGGER refused_{event} BEFORE {event} ON {table} WHEN {condition}
                     BEGIN SELECT RAISE({effect}, 'refused'); END"
                )
            } else {
                format!(
                    "CREATE OR REPLACE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql
                         AS 'BEGIN RAISE EXCEPTION ''refused''; END';
                     CREATE TRIGGER refused_{event} BEFORE {event} ON {table} FOR EACH ROW
                         WHEN ({condition}) EXECUTE FUNCTION refused()"
                )
            };
            self.database.batch(&statements).unwrap();
        }
    }

    /// Ends what [`Self::refuse`] began.
    pub fn refuse_nothing(&self, table: &str) {
        for event in ["INSERT", "UPDATE"] {
            let on_table = match self.database.sqlite() {
                Some(_) => String::new(),
                None => format!(" ON {table}"),
            };
            let drop = format!("DROP TRIGGER refused_{event}{on_table}");
            self.database.batch(&drop).unwrap();
        }
    }

    /// Sets the version of the database's schema.
    #[cfg(test)]
    pub(crate) fn set_schema_version(&self, version: i64) {
        let statement = match self.database.sqlite() {
            Some(_) => format!("PRAGMA user_version = {version}"),
            None => format!("UPDATE schema_version SET version = {version}"),
        };
        self.database.batch(&statement).unwrap();
    }

    /// Lets the database of this connection get no further page, as on a full disk, or ends that.
    pub fn set_full(&self, is_full: bool) {
        let connection = self.database.sqlite().unwrap();
        let set = |pages: u32| {
            let pragma = format!("PRAGMA max_page_count = {pages}");
            connection.query_row(&pragma, [], |_| Ok(())).unwrap();
        };
        if !is_full {
            return set(u32::MAX - 1);
        }
        connection
            .execute_batch("CREATE TABLE IF NOT EXISTS filler (content BLOB)")
            .unwrap();
        // SQLite never sets less than the database has.
        set(1);
        let fill = || connection.execute("INSERT INTO filler VALUES (zeroblob(2000))", []);
        let error = std::iter::repeat_with(fill)
            .find_map(|filled| filled.err())
            .unwrap();
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DiskFull));
    }
}
