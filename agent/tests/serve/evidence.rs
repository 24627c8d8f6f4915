//! Tests of a run's evidence: its hashes, its signature, and the reasons why it is not a measurement.

use std::fs;

use regatta_types::documents::{Document as _, Evidence, RunPhase};
use ring::signature::{ED25519, UnparsedPublicKey};

use crate::{
    agent::{Agent, sha256},
    coordinator::Coordinator,
    mosquitto::Mosquitto,
};

#[test]
fn evidence_is_signed_and_holds_every_files_hash() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start(broker.port);
    agent.stop();
    let run = agent.lay_down_interrupted_run(&[
        ("mlperf_log_summary.txt", b"half a summary"),
        ("run.log", b""),
        ("two words", b""),
    ]);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    agent.launch();
    let report = coordinator.wait_for(run, RunPhase::Failed, 20);
    let streams = coordinator.wait_for_streams(run, 20);
    let bytes = &streams["evidence.json"];
    let evidence = Evidence::from_json(bytes).unwrap();
    assert_eq!((evidence.run, &evidence.device), (run, &agent.device));
    assert_eq!(evidence.outcome, report.state);
    assert_eq!(
        evidence.spec_sha256,
        sha256(&fs::read(agent.run_dir(run).join("spec.json")).unwrap())
    );
    assert!(
        evidence.attempts.is_empty(),
        "LoadGen never ran, as far as the device knows"
    );
    let files: Vec<(&str, u64, &str)> = evidence
        .files
        .iter()
        .map(|file| (file.name.as_str(), file.bytes, file.sha256.as_str()))
        .collect();
    let (summary, empty) = (sha256(b"half a summary"), sha256(b""));
    assert_eq!(
        files,
        [
            ("mlperf_log_summary.txt", 14, summary.as_str()),
            ("run.log", 0, empty.as_str())
        ]
    );
    assert!(
        evidence
            .not_a_measurement
            .iter()
            .any(|why| why.contains("`two words`"))
    );
    assert!(
        evidence
            .not_a_measurement
            .iter()
            .any(|why| why.contains("own LoadGen"))
    );
    assert!(
        evidence
            .not_a_measurement
            .iter()
            .any(|why| why.contains("sim engine"))
    );

    let public_key = coordinator.known().hello.clone().unwrap().public_key;
    let key = UnparsedPublicKey::new(&ED25519, public_key);
    let signature = unhex(std::str::from_utf8(&streams["evidence.sig"]).unwrap().trim_end());
    assert!(key.verify(bytes, &signature).is_ok());
    let mut forged = bytes.clone();
    forged[10] ^= 1;
    assert!(key.verify(&forged, &signature).is_err());
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}
