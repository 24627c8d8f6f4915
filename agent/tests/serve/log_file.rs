//! Tests of the log of a daemon without a service manager.

use std::{fs, io::Write as _};

use crate::{agent::Agent, eventually};

/// Nobody else rotates a log to which the daemon appends for months.
#[test]
fn a_large_log_in_the_state_directory_is_set_aside_while_the_daemon_runs() {
    let mut agent = Agent::start_without_broker(1, "state_dir = '.'\nmin_free_mib = 16\nheartbeat_ms = 250");
    agent.stop();
    let log = agent.log_path();
    let line = [&[b'x'; 1023][..], b"\n"].concat();
    let mut file = fs::File::options().append(true).open(&log).unwrap();
    file.write_all(&line.repeat(9 << 10)).unwrap();
    agent.launch();
    let former = log.with_file_name("agent.log.1");
    eventually("the log to be set aside", 20, || {
        let is_short = fs::metadata(&log).unwrap().len() < 1 << 20;
        (is_short && fs::metadata(&former).is_ok_and(|former| former.len() > 9 << 20)).then_some(())
    });
    agent.stop();
    let text = fs::read(&log).unwrap();
    assert!(
        !text.is_empty() && !text.contains(&0),
        "further lines are at its beginning"
    );
}
