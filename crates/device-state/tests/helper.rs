//! The real helper on a simulated board: what it sets, what it refuses, and that it restores everything after any crash.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use regatta_device_state::{
    client::{HelperConnection, HelperError},
    state_request::StateRequest,
};
use regatta_test_support::settable_board::{Socket, bytes_of, get, own_user, put, settable_orin};

const GPU_MIN: &str = "sys/class/devfreq/17000000.gpu/min_freq";
const EVERYTHING: &str = "power-mode=MODE_30W fan=200 cores=4 cpu=cap:576000000 gpu=lock:612000000 memory=lock:2133000000 dla=cap:883200000";

fn listen(root: &Path) -> Socket {
    Socket::listen(env!("CARGO_BIN_EXE_regatta-state").into(), root, own_user())
}

fn request(text: &str) -> StateRequest {
    text.parse().unwrap()
}

fn refused(outcome: Result<Vec<regatta_device_state::message::ControlReport>, HelperError>) -> String {
    match outcome {
        Err(HelperError::Refused { reason, .. }) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

/// Waits for something that another process does.
fn eventually(what: &str, look: impl Fn() -> bool) {
    let begin = Instant::now();
    while !look() {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "waited 30 s for {what}"
        );
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_state_is_applied_verified_and_restored_to_the_byte() {
    let root = settable_orin();
    let socket = listen(root.path());
    let before = bytes_of(root.path());
    let mut helper = HelperConnection::connect(&socket.path()).unwrap();
    let lines = helper.apply(&request(EVERYTHING)).unwrap();
    assert!(
        lines.iter().all(|line| line.holds() && line.requested.is_some()),
        "{lines:?}"
    );
    let at = |path: &str| get(root.path(), path);
    assert_eq!(at("var/lib/nvpmodel/status"), "pmode:0002 fmode:cool");
    assert_eq!(
        (
            at("fan-service").as_str(),
            at("sys/class/hwmon/hwmon1/pwm1").as_str()
        ),
        ("inactive", "200")
    );
    assert_eq!(
        (
            at("sys/devices/system/cpu/cpu3/online").as_str(),
            at("sys/devices/system/cpu/cpu4/online").as_str()
        ),
        ("1", "0")
    );
    assert_eq!(
        at("sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"),
        "576000"
    );
    assert_eq!(at(GPU_MIN), "612000000");
    assert_eq!(at("sys/kernel/debug/bpmp/debug/clk/emc/mrq_rate_locked"), "1");
    assert_eq!(at("sys/kernel/nvpmodel_clk_cap/dla1_core"), "883200000");
    assert!(refused(helper.apply(&request("fan=1"))).contains("already applied"));
    let back = helper.restore().unwrap();
    assert!(
        !back.is_empty()
            && back
                .iter()
                .all(regatta_device_state::message::ControlReport::holds),
        "{back:?}"
    );
    assert_eq!(bytes_of(root.path()), before);
    assert!(!socket.journal().exists());
}

#[test]
fn max_clocks_are_the_hardware_limits_and_bounds_never_cross() {
    let root = settable_orin();
    put(
        root.path(),
        "sys/devices/system/cpu/cpufreq/policy4/scaling_min_freq",
        "115200\n",
    );
    put(
        root.path(),
        "sys/devices/system/cpu/cpufreq/policy4/scaling_max_freq",
        "576000\n",
    );
    let socket = listen(root.path());
    let before = bytes_of(root.path());
    let mut helper = HelperConnection::connect(&socket.path()).unwrap();
    helper
        .apply(&request(
            "power-mode=MAXN cpu=lock:max gpu=lock:max memory=lock:max",
        ))
        .unwrap();
    for bound in ["min", "max"] {
        let file = format!("sys/devices/system/cpu/cpufreq/policy4/scaling_{bound}_freq");
        assert_eq!(get(root.path(), &file), "2201600");
    }
    assert_eq!(
        get(root.path(), "sys/kernel/debug/bpmp/debug/clk/emc/rate"),
        "3199000000"
    );
    drop(helper);
    eventually("the helper to restore the state after its agent has gone", || {
        bytes_of(root.path()) == before
    });
}

#[test]
fn a_control_that_changes_back_refuses_the_state_and_restores_the_rest() {
    let root = settable_orin();
    let socket = listen(root.path());
    let before = bytes_of(root.path());
    let (done, file) = (AtomicBool::new(false), root.path().join(GPU_MIN));
    // A fake of a service that changes the clock back.
    let reason = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if fs::read(&file).unwrap() == b"612000000\n" {
                    fs::write(&file, "306000000\n").unwrap();
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        let reason = refused(
            HelperConnection::connect(&socket.path())
                .unwrap()
                .apply(&request(EVERYTHING)),
        );
        done.store(true, Ordering::Relaxed);
        reason
    });
    assert_eq!(reason, "gpu-min was set to 612000000, and reads 306000000");
    assert_eq!(bytes_of(root.path()), before);
}

/// Published bounds are often between the rates of the board at hand, or above all of them.
#[test]
fn a_bound_between_two_rates_is_the_lower_one() {
    let root = settable_orin();
    let socket = listen(root.path());
    let mut helper = HelperConnection::connect(&socket.path()).unwrap();
    let requested = "cpu=cap:577000000 gpu=cap:930749999 memory=cap:9000000000 dla=cap:9000000000";
    let lines = helper.apply(&request(requested)).unwrap();
    assert!(lines.iter().all(|line| line.holds()), "{lines:?}");
    let at = |path: &str| get(root.path(), path);
    assert_eq!(
        at("sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"),
        "576000"
    );
    assert_eq!(at("sys/class/devfreq/17000000.gpu/max_freq"), "624750000");
    assert_eq!(at("sys/kernel/nvpmodel_clk_cap/emc"), "3199000000");
    assert_eq!(at("sys/kernel/nvpmodel_clk_cap/dla0_core"), "1600000000");
    helper.restore().unwrap();
}

#[test]
fn controls_and_rates_that_the_board_lacks_are_refused() {
    let root = settable_orin();
    let socket = listen(root.path());
    let before = bytes_of(root.path());
    for (requested, expected) in [
        ("power-mode=MODE_7W", "nvpmodel.conf has no mode MODE_7W"),
        (
            "fan=9 cpu=lock:577000000",
            "has no clock of 577000; the nearest is 576000",
        ),
        ("gpu=lock:99000000000", "has no clock of 99000000000"),
        (
            "gpu=cap:305999999",
            "has no clock of 305999999; the nearest is 306000000",
        ),
        ("memory=lock:4000000000", "has no clock of 4000000000"),
        ("cores=13", "1 to 12 cores"),
        ("cores=0", "1 to 12 cores"),
    ] {
        let reason = refused(
            HelperConnection::connect(&socket.path())
                .unwrap()
                .apply(&request(requested)),
        );
        assert!(reason.contains(expected), "{requested}: {reason}");
        assert_eq!(bytes_of(root.path()), before, "{requested}");
    }
    // On arm64, core 0 has an `online` file as well. It does not count twice.
    put(root.path(), "sys/devices/system/cpu/cpu0/online", "1\n");
    let reason = refused(
        HelperConnection::connect(&socket.path())
            .unwrap()
            .apply(&request("cores=13")),
    );
    assert!(reason.contains("1 to 12 cores"), "{reason}");
    // A PC in a virtual machine has no CPU clock and no DLA.
    fs::remove_dir_all(root.path().join("sys/devices/system/cpu/cpufreq")).unwrap();
    fs::remove_dir_all(root.path().join("sys/kernel/nvpmodel_clk_cap")).unwrap();
    for (requested, expected) in [
        ("cpu=lock:max", "no CPU clock that can be set"),
        ("dla=cap:883200000", "no DLA clock that can be set"),
    ] {
        let reason = refused(
            HelperConnection::connect(&socket.path())
                .unwrap()
                .apply(&request(requested)),
        );
        assert!(reason.contains(expected), "{requested}: {reason}");
    }
}

#[test]
fn the_next_helper_restores_the_state_of_a_killed_one() {
    let root = settable_orin();
    let socket = listen(root.path());
    let before = bytes_of(root.path());
    // The helper sets the fan, and then waits for the fake nvpmodel.
    put(root.path(), "nvpmodel-is-slow", "");
    let mut killed = HelperConnection::connect(&socket.path()).unwrap();
    let apply = thread::spawn(move || killed.apply(&request(EVERYTHING)));
    eventually("the transaction's first change", || {
        get(root.path(), "fan-service") == "inactive"
    });
    eventually("the second", || {
        get(root.path(), "sys/class/hwmon/hwmon1/pwm1") == "200"
    });
    socket.kill_helpers();
    assert!(matches!(
        apply.join().unwrap(),
        Err(HelperError::ConnectionLost(_))
    ));
    assert!(socket.journal().exists());
    fs::remove_file(root.path().join("nvpmodel-is-slow")).unwrap();
    // The killed helper's nvpmodel may still be running.
    thread::sleep(Duration::from_millis(100));
    HelperConnection::connect(&socket.path())
        .unwrap()
        .restore()
        .unwrap();
    assert_eq!(bytes_of(root.path()), before);
    assert!(!socket.journal().exists());
}

#[test]
fn after_a_reboot_only_the_power_mode_is_restored() {
    let root = settable_orin();
    let socket = listen(root.path());
    let status = fs::read(root.path().join("var/lib/nvpmodel/status")).unwrap();
    let mut helper = HelperConnection::connect(&socket.path()).unwrap();
    helper.apply(&request(EVERYTHING)).unwrap();
    socket.kill_helpers();
    // After a boot the kernel's controls are reset, and nvpmodel has applied its mode again.
    put(root.path(), "proc/sys/kernel/random/boot_id", "boot-2\n");
    put(
        root.path(),
        "sys/kernel/debug/bpmp/debug/clk/emc/mrq_rate_locked",
        "0\n",
    );
    put(root.path(), "sys/kernel/nvpmodel_clk_cap/dla0_core", "7\n");
    let back = HelperConnection::connect(&socket.path())
        .unwrap()
        .restore()
        .unwrap();
    let controls: Vec<String> = back.iter().map(|line| line.control.to_string()).collect();
    assert_eq!(controls, ["power-mode"]);
    assert_eq!(
        fs::read(root.path().join("var/lib/nvpmodel/status")).unwrap(),
        status
    );
    assert_eq!(
        get(root.path(), "sys/kernel/nvpmodel_clk_cap/dla0_core"),
        "7",
        "the new boot's own"
    );
    assert!(
        HelperConnection::connect(&socket.path())
            .unwrap()
            .restore()
            .unwrap()
            .is_empty(),
        "once"
    );
}

#[test]
fn only_one_run_holds_the_state_and_others_can_read() {
    let root = settable_orin();
    let socket = listen(root.path());
    let mut first = HelperConnection::connect(&socket.path()).unwrap();
    first.apply(&request("gpu=lock:max")).unwrap();
    let mut second = HelperConnection::connect(&socket.path()).unwrap();
    assert!(refused(second.apply(&request("fan=9"))).contains("another run has set"));
    let seen = second.read(&[]).unwrap();
    assert!(
        seen.iter().any(|line| line.control.to_string() == "memory-rate"),
        "{seen:?}"
    );
    first.restore().unwrap();
    second.apply(&request("fan=9")).unwrap();
}

#[test]
fn another_user_is_refused_before_anything_is_read() {
    let root = settable_orin();
    let other_user = if own_user() == 65_534 { 1 } else { 65_534 };
    let socket = Socket::listen(
        env!("CARGO_BIN_EXE_regatta-state").into(),
        root.path(),
        other_user,
    );
    let before = bytes_of(root.path());
    let outcome = HelperConnection::connect(&socket.path())
        .unwrap()
        .apply(&request(EVERYTHING));
    // The connection may be closed before the refusal is read.
    match outcome {
        Err(HelperError::Refused { reason, .. }) => assert!(reason.contains("may not set"), "{reason}"),
        Err(HelperError::ConnectionLost(_)) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(bytes_of(root.path()), before);
}

#[test]
fn an_invalid_request_sets_nothing() {
    let root = settable_orin();
    let socket = listen(root.path());
    let before = bytes_of(root.path());
    for (sent, answer) in [
        ("2 apply fan=9\n", "refused regatta-state has protocol version 1"),
        ("1 write /sys/class/devfreq 7\n", "refused `1 write"),
        ("1 apply fan=9 path=/etc/passwd\n", "refused `1 apply"),
        ("\n", "refused `` is not a request"),
    ] {
        let mut stream = UnixStream::connect(socket.path()).unwrap();
        stream.write_all(sent.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        assert!(line.starts_with(answer), "{sent}: {line}");
    }
    // A line without an end, and bytes that are not UTF-8, end the session.
    for sent in [vec![b'x'; 4096], vec![0xff, 0xfe, b'\n']] {
        let mut stream = UnixStream::connect(socket.path()).unwrap();
        let _ = stream.write_all(&sent);
        let mut line = String::new();
        let _ = BufReader::new(&stream).read_line(&mut line);
        assert_eq!(line, "");
    }
    assert_eq!(bytes_of(root.path()), before);
}

#[test]
fn an_unknown_response_and_a_lost_connection_give_different_errors() {
    let place = tempfile::tempdir().unwrap();
    let answers = |answer: &'static [u8]| {
        let socket = place.path().join("socket");
        let _ = fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).unwrap();
        let helper = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            BufReader::new(&stream).read_line(&mut String::new()).unwrap();
            stream.write_all(answer).unwrap();
        });
        let error = HelperConnection::connect(&socket).unwrap().read(&[]).unwrap_err();
        helper.join().unwrap();
        error.to_string()
    };
    assert!(
        answers(b"control fan 1 2\n")
            .contains("is of another version; hint: install agent and helper from one package")
    );
    assert!(answers(b"").ends_with("was lost"));
}

#[test]
fn an_invalid_journal_is_refused() {
    let root = settable_orin();
    let socket = listen(root.path());
    fs::write(socket.journal(), "before ../../etc/passwd x\n").unwrap();
    let reason = refused(
        HelperConnection::connect(&socket.path())
            .unwrap()
            .apply(&request("fan=9")),
    );
    assert!(reason.contains("is not a journal of regatta-state"), "{reason}");
}
