//! What is killed, cut or interrupted in the middle of a session, and what is left afterwards.

use std::{
    process::{Command, Output},
    sync::atomic::Ordering,
};

use regatta_tests::{
    power_sessions::{kill, processes},
    printed,
    wire::{CUT, Wire},
};

use crate::bench::Bench;

pub(crate) fn a_program_that_is_killed(bench: &Bench, program: &str, reason: &str) {
    let meter = format!("killed-{}", program.replace('.', "-"));
    bench.add_meter(&meter, bench.director.port, "");
    let (mut process, id) = bench.begin(&meter);
    let victims = processes(|line| line.contains(&id) && line.contains(program) && !line.contains("import"));
    assert!(!victims.is_empty(), "no process has {program}");
    kill(&victims);
    bench.expect_failure(&meter, &mut process, &id, reason);
}

pub(crate) fn a_connection_that_ends(bench: &Bench, how: u8) {
    let meter = if how == CUT { "cut" } else { "silent" };
    let wire = Wire::to(bench.director.port);
    bench.add_meter(meter, wire.port, "");
    let (mut process, id) = bench.begin(meter);
    wire.state.store(how, Ordering::Relaxed);
    bench.expect_failure(
        meter,
        &mut process,
        &id,
        "the connection to the director was lost",
    );
}

/// Regatta itself is killed: nothing remains on either machine, and the next session reports it.
pub(crate) fn a_command_that_is_killed(bench: &Bench) {
    bench.add_meter("command", bench.director.port, "--fault crash=ranging:0");
    let (mut process, id) = bench.begin("command");
    process.kill();
    bench.expect_no_process(&id);
    let output: Output = bench.session("command").output().expect("regatta starts");
    let words = printed(&output);
    assert!(
        words.contains("ended without a result") && words.contains("files of earlier sessions"),
        "{words}"
    );
}

/// Ctrl-C ends everything, and is the recorded reason.
pub(crate) fn a_command_that_is_interrupted(bench: &Bench) {
    bench.add_meter("interrupted", bench.director.port, "");
    let (mut process, id) = bench.begin("interrupted");
    let killed = Command::new("kill")
        .args(["-INT", &process.id().to_string()])
        .status();
    assert!(killed.expect("kill starts").success());
    bench.expect_failure("interrupted", &mut process, &id, "it was interrupted");
}

pub(crate) fn a_device_that_is_lost(bench: &mut Bench) {
    bench.add_meter("lost", bench.director.port, "");
    let (mut process, id) = bench.begin("lost");
    bench.lab.device = None;
    bench.expect_failure("lost", &mut process, &id, "agent was offline for 30 s");
}
