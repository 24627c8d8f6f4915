//! Tests of `regatta serve --detach` and `--stop` with real processes: a coordinator survives its terminal, is started only once, reports why it did
//! not start, and ends gracefully.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{
    fs::{self, File},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use regatta_test_support::json_schema::command_findings;
use serde_json::Value;
use support::{coordinator::Coordinator, eventually};

/// A workspace whose coordinator is stopped when the test ends.
struct Lab(Coordinator);

impl Lab {
    fn new() -> Self {
        Self(Coordinator::embedded())
    }

    fn is_served(&self) -> bool {
        TcpStream::connect(("127.0.0.1", self.0.port)).is_ok()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.0.path("serve.log")).unwrap_or_default()
    }

    fn detach(&self) -> Value {
        self.0.json(&["serve", "--detach"])
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let ended = self.0.output(&["serve", "--stop"]);
        if std::thread::panicking() {
            println!("--- serve.log\n{}\n--- serve --stop\n{ended:?}", self.log());
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn code_and_errors(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), text(&output.stderr))
}

#[test]
fn a_coordinator_in_the_background_listens_once_its_command_returns() {
    let lab = Lab::new();
    let started = lab.0.output(&["serve", "--detach"]);
    let printed = text(&started.stdout);
    assert!(started.status.success(), "{started:?}");
    assert!(lab.is_served(), "{printed}");
    let root = lab.0.root().display();
    for expected in [
        format!("serving {root} at mqtt://127.0.0.1:{}", lab.0.port),
        format!("with its log in {root}/serve.log"),
        format!("`regatta serve --stop --workspace {root}` ends it"),
    ] {
        assert!(printed.contains(&expected), "{expected}: {printed}");
    }
    assert!(lab.log().contains("serving "), "{}", lab.log());
    let stopped = lab.0.json(&["serve", "--stop"]);
    assert_eq!(stopped["stopped"], true);
    assert!(!lab.is_served());
    let process = stopped["process"].as_u64().unwrap();
    eventually("the process to end", 10, || {
        (!Path::new(&format!("/proc/{process}")).exists()).then_some(())
    });
}

/// `script` runs the command on a terminal, which is closed when the command ends.
#[test]
fn a_coordinator_in_the_background_survives_its_terminal() {
    let lab = Lab::new();
    let command = format!(
        "{} --workspace {} serve --detach",
        env!("CARGO_BIN_EXE_regatta"),
        lab.0.root().display()
    );
    let on_terminal = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(on_terminal.status.success(), "{on_terminal:?}");
    // All processes of the terminal have ended. Wait for a signal that may still be on its way.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(lab.is_served(), "{}", lab.log());
    assert_eq!(lab.0.json(&["status"])["coordinator"]["running"], true);
}

#[test]
fn a_second_start_and_a_second_end_say_so_and_succeed() {
    let lab = Lab::new();
    let nobody = lab.0.output(&["serve", "--stop"]);
    assert!(nobody.status.success(), "{nobody:?}");
    assert_eq!(
        text(&nobody.stdout),
        format!("no coordinator serves {}\n", lab.0.root().display())
    );
    let first = lab.detach();
    assert_eq!(first["started"], true);
    assert_eq!(command_findings(&first, "startedCoordinator"), [] as [&str; 0]);
    let second = lab.detach();
    assert_eq!(command_findings(&second, "runningCoordinator"), [] as [&str; 0]);
    assert_eq!(
        (&second["started"], &second["process"]),
        (&false.into(), &first["process"])
    );
    let (code, errors) = code_and_errors(&lab.0.output(&["serve"]));
    assert_eq!(code, Some(3));
    assert!(
        errors.contains("serve --stop") && errors.contains("ends it"),
        "{errors}"
    );
    assert_eq!(lab.0.json(&["serve", "--stop"])["process"], first["process"]);
    assert_eq!(lab.0.json(&["serve", "--stop"])["stopped"], false);
    assert_eq!(lab.detach()["started"], true);
}

#[test]
fn a_coordinator_of_a_terminal_is_ended_gracefully_too() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    // Before it prints its addresses, a signal would end it at once.
    eventually("the addresses", 10, || {
        coordinator.printed().contains("serving ").then_some(())
    });
    assert_eq!(coordinator.json(&["serve", "--stop"])["stopped"], true);
    assert_eq!(coordinator.end(), Some(0), "{}", coordinator.printed());
}

#[test]
fn a_start_that_fails_has_the_reason_and_the_exit_code_of_serve() {
    let lab = Lab::new();
    let holder = TcpListener::bind(("127.0.0.1", lab.0.port)).unwrap();
    let in_foreground = code_and_errors(&lab.0.output(&["serve"]));
    assert_eq!(in_foreground.0, Some(3));
    assert!(
        in_foreground.1.contains(&lab.0.port.to_string()),
        "{}",
        in_foreground.1
    );
    let in_background = code_and_errors(&lab.0.output(&["serve", "--detach"]));
    assert_eq!(in_background, in_foreground);
    drop(holder);
    lab.detach();
    lab.0.output(&["serve", "--stop"]);
    // The configuration is read before anything is started.
    fs::write(lab.0.path("regatta.toml"), "schema = 1\nlisten = 7\n").unwrap();
    let (code, errors) = code_and_errors(&lab.0.output(&["serve", "--detach"]));
    assert_eq!(code, Some(2), "{errors}");
}

#[test]
fn a_log_that_is_large_is_renamed_and_continued() {
    let lab = Lab::new();
    let large = File::create(lab.0.path("serve.log")).unwrap();
    large.set_len(9 << 20).unwrap();
    lab.detach();
    let older = lab.0.path("serve.log.1");
    eventually("the older log", 10, || older.exists().then_some(()));
    assert!(fs::metadata(&older).unwrap().len() > 9 << 20);
    eventually("a new log", 10, || lab.0.path("serve.log").exists().then_some(()));
    let _device = lab.0.join(1);
    eventually("the device in the new log", 10, || {
        lab.log().contains("connected").then_some(())
    });
}

/// A directory in which commands are called without naming a workspace.
struct Place(tempfile::TempDir);

impl Place {
    fn regatta(&self, within: &str, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_regatta"))
            .args(words)
            .current_dir(self.path(within))
            .env_remove("REGATTA_WORKSPACE")
            .env_remove("MLPERF_SCRATCH_PATH")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    /// Creates a lab whose ports are free.
    fn init(&self, within: &str, words: &[&str]) -> Output {
        let ports = ["--listen", "--enroll-listen", "--assets-listen"];
        let ports: Vec<String> = ports
            .iter()
            .map(|option| format!("{option}=127.0.0.1:{}", support::free_port()))
            .collect();
        let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
        self.regatta(within, &[&["init"], words, &ports].concat())
    }
}

#[test]
fn a_lab_made_in_a_directory_is_found_from_around_and_inside_it() {
    let place = Place(tempfile::tempdir().unwrap());
    let made = place.init("", &["lab"]);
    assert!(made.status.success(), "{made:?}");
    let printed = text(&made.stdout);
    assert!(printed.contains("  regatta serve --detach\n"), "{printed}");
    let started = place.regatta("", &["serve", "--detach"]);
    assert!(started.status.success(), "{started:?}");
    let status = place.regatta("lab/runs", &["status", "--format", "json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["coordinator"]["running"], true);
    let stopped = place.regatta("", &["serve", "--stop"]);
    assert!(
        text(&stopped.stdout).starts_with("the coordinator of lab (process "),
        "{stopped:?}"
    );
}

#[test]
fn several_labs_are_not_chosen_among() {
    let place = Place(tempfile::tempdir().unwrap());
    assert!(place.init("", &["lab"]).status.success());
    let made = place.init("", &["other"]);
    let printed = text(&made.stdout);
    assert!(
        printed.contains("  regatta serve --detach --workspace other\n"),
        "{printed}"
    );
    let (code, errors) = code_and_errors(&place.regatta("", &["status"]));
    assert_eq!(code, Some(2));
    assert!(
        errors.contains(
            "there are several below it (lab, other): name one with --workspace DIR or REGATTA_WORKSPACE"
        ),
        "{errors}"
    );
    let (code, errors) = code_and_errors(&place.init("", &["third", "--workspace", "fourth"]));
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("two directories are named: third, and fourth"),
        "{errors}"
    );
    assert!(!place.path("third").exists() && !place.path("fourth").exists());
    let (code, errors) = code_and_errors(&place.init("", &["lab"]));
    assert_eq!(code, Some(2));
    assert!(errors.contains("`regatta serve --workspace lab`"), "{errors}");
}
