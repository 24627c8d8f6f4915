//! Tests with pipes and devices in place of files: the agent refuses them by name, and neither waits nor reads without end.

use std::{fs, process::Command};

use regatta_test_support::fixture::Fixture;

use crate::support::{MLPERF_CONF, USER_CONF, bench_arguments};

/// Runs the agent for at most ten seconds; returns exit code and output. `timeout` exits with 124 when it hangs.
fn agent(fixture: &Fixture, words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new("timeout")
        .args(["10", env!("CARGO_BIN_EXE_regatta-agent")])
        .args(words)
        .current_dir(fixture.scratch())
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn pipes_and_devices_are_refused_by_name() {
    let fixture = Fixture::new();
    fs::write(fixture.path("mlperf.conf"), MLPERF_CONF).unwrap();
    fs::write(fixture.path("user.conf"), USER_CONF).unwrap();
    let pipe = fixture.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for (endless, kind) in [(pipe.to_str().unwrap(), "named pipe"), ("/dev/zero", "device")] {
        let mut commands = vec![vec!["serve", "--config", endless]];
        for flag in ["--mlperf-conf", "--user-conf", "--benchmark-file", "--audit-conf"] {
            commands.push(bench_arguments(&[(flag, endless)]));
        }
        for words in commands {
            let (code, output_text) = agent(&fixture, &words);
            assert!(matches!(code, Some(2 | 3)), "{words:?}: {code:?} {output_text}");
            assert!(
                output_text.contains(endless)
                    && output_text.contains(&format!("it is a {kind}, not a regular file")),
                "{words:?}: {output_text}"
            );
        }
    }
}
