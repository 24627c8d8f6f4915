//! A draft for tests of the store, the ingest and the evidence, which do not depend on its content.

use regatta_config::catalogue::Catalogue;
use regatta_types::{
    DeviceId, Mode, Scenario,
    documents::{Delivery, EngineKind, EngineSpec, LoadgenChoice, RunLength},
};

use super::Request;
use crate::store::RunDraft;

/// A performance run of the bundled benchmark on a device.
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
    };
    request.draft().unwrap()
}
