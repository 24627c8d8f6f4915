//! Tests of the daemon's start and of its refusals: exit codes and one sentence on standard error.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use crate::{agent::Agent, coordinator::Coordinator, mosquitto::Mosquitto};

fn serve(config: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_regatta-agent"))
        .args(["serve", "--config"])
        .arg(config)
        .output()
        .unwrap()
}

#[test]
fn invalid_configuration_exits_2_with_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("agent.toml");
    fs::write(
        &config,
        "name = 'a'\nstate_dir = 's'\nbroker = 'mqtt://192.0.2.7'\n",
    )
    .unwrap();
    let output = serve(&config);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        message.contains("agent.toml:3: ") && message.contains("allow_plain = true"),
        "{message}"
    );
    let output = serve(&dir.path().join("missing.toml"));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("agent.example.toml")
    );
}

#[test]
fn unusable_state_dir_exits_3() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("agent.toml");
    fs::write(dir.path().join("file"), "").unwrap();
    fs::write(
        &config,
        "name = 'a'\nstate_dir = 'file/state'\nbroker = 'mqtt://localhost'\n",
    )
    .unwrap();
    let output = serve(&config);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("state directory")
    );
}

#[test]
fn two_daemons_do_not_share_a_state_directory() {
    // No broker listens there: the daemon waits for one, and holds its lock.
    let first = Agent::start_without_broker(9, "min_free_mib = 16");
    let config = first.run_dir("01930e7a-6f00-7000-8000-000000000001".parse().unwrap());
    let config = config.ancestors().nth(3).unwrap().join("agent.toml");
    let output = serve(&config);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("another daemon uses")
    );
}

#[test]
fn the_hello_is_retained_and_the_farewell_follows_sigterm_and_the_will_a_kill() {
    let Some(broker) = Mosquitto::start() else { return };
    let mut agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let hello = coordinator.wait_for_hello(true);
    assert_eq!(
        (hello.device.as_str(), hello.name.as_str()),
        (agent.device.as_str(), "boat-3")
    );
    assert!(sha_of_key(&hello.public_key).starts_with(agent.device.as_str()));
    let facts: serde_json::Value = serde_json::from_slice(&hello.facts_json).unwrap();
    assert!(facts["cpus"].as_u64().unwrap() > 0);
    assert_eq!(agent.stop().code(), Some(0));
    coordinator.wait_for_hello(false);
    agent.launch();
    coordinator.wait_for_hello(true);
    agent.kill();
    coordinator.wait_for_hello(false);
}

fn sha_of_key(key: &[u8]) -> String {
    crate::agent::sha256(key)
}
