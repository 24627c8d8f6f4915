//! A draft and a record for tests of the store, the ingest and the evidence, which do not depend on their content.

use regatta_config::catalogue::Catalogue;
use regatta_types::{
    DeviceId, Mode, Scenario,
    documents::{
        Delivery, DeliveryProof, Document as _, EngineKind, EngineSpec, LoadgenChoice, Record, RunLength,
        RunState, RunTask,
    },
};

use super::Request;
use crate::store::{RunDraft, RunRow};

/// Creates a performance run of the bundled benchmark on a device.
pub(crate) fn example_draft(device: DeviceId) -> RunDraft {
    let catalogue = Catalogue::read(None).unwrap();
    let request = Request {
        device,
        benchmark: catalogue.benchmark("digits").unwrap(),
        round: catalogue.round(None).unwrap(),
        scenario: Scenario::Offline,
        mode: Mode::PerformanceOnly,
        engine: EngineSpec {
            kind: EngineKind::Null,
            settings: Default::default(),
        },
        loadgen: LoadgenChoice::Native,
        length: RunLength::Full,
        delivery: Delivery::After,
        system: None,
        conf: Default::default(),
        state: None,
        gate: None,
        task: RunTask::Measurement,
    };
    request.draft().unwrap()
}

/// Creates a record of a run without any file.
pub(crate) fn example_record(run: &RunRow, state: &RunState) -> Record {
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
        accuracy: None,
        not_judged: Vec::new(),
        contradictions: Vec::new(),
        window: None,
        audit: None,
    }
}
