//! Tests of `regatta top` at a real terminal: it follows the fleet, and restores the terminal however it ends.

use std::{fs, process::Command};

use regatta_tests::{Broker, Lab, Process, agent, succeed_output, terminal::Terminal};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn the_screen_follows_the_fleet_and_restores_the_terminal() {
    let Some(mut lab) = Lab::secure(Broker::Embedded) else {
        return;
    };
    // Without a terminal the command fails, and the hint names a command that prints.
    let refused = lab.regatta().arg("top").output().expect("it starts");
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("regatta device list"), "{text}");

    let top = |lab: &Lab| {
        let mut command = lab.regatta();
        command.arg("top").env("NO_COLOR", "1");
        Terminal::start(&command)
    };
    let mut screen = top(&lab);
    screen.wait_for("coordinator");
    lab.start_coordinator();
    screen.wait_for("0 devices");

    let tokens = succeed_output(lab.regatta().args(["device", "add", "boat", "--count", "2"]));
    let path = lab.scratch().join("tokens");
    fs::write(&path, &tokens.stdout).expect("the tokens");
    let mut simulate = Command::new(agent());
    simulate
        .args(["simulate", "--name", "boat", "--devices", "2", "--state-dir"])
        .arg(lab.scratch().join("fleet"))
        .arg("--tokens")
        .arg(&path);
    let _fleet = Process::start(&mut simulate, &lab.scratch().join("fleet.log"));
    screen.wait_for("boat-0002");
    screen.type_in("/2\n");
    screen.wait_for("match");
    screen.type_in("q");
    let status = screen.end();
    let shown = screen.shown_at_end();
    assert!(status.success() && screen.is_in_order(), "{status}");
    // The alternate screen is left and the cursor is shown.
    assert!(
        shown.rfind("\x1b[?1049l") > shown.rfind("\x1b[?1049h"),
        "{shown:?}"
    );
    assert!(shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l"), "{shown:?}");
    let colours = ["\x1b[38;", "\x1b[31m", "\x1b[32m", "\x1b[33m"];
    assert!(colours.iter().all(|colour| !shown.contains(colour)), "{shown:?}");

    let mut interrupted = top(&lab);
    interrupted.wait_for("2 devices");
    interrupted.type_in("\x03");
    assert!(interrupted.end().success() && interrupted.is_in_order());

    let mut terminated = top(&lab);
    terminated.wait_for("2 devices");
    let pid = Pid::from_raw(i32::try_from(terminated.pid()).expect("a pid")).expect("a process");
    kill_process(pid, Signal::TERM).expect("it runs");
    assert!(terminated.end().success() && terminated.is_in_order());
}
