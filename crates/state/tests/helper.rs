//! The real helper over a board's root: what it sets, what it refuses, and that everything is put back, whatever dies.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

mod support;

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use regatta_state::{
    client::{Helper, HelperError},
    wish::Wish,
};
use support::{Socket, bytes_of, get, own_user, put, settable_orin};

const GPU_MIN: &str = "sys/class/devfreq/17000000.gpu/min_freq";
const EVERYTHING: &str = "power-mode=MODE_30W fan=200 cores=4 cpu=cap:576000000 gpu=lock:612000000 memory=lock:2133000000 dla=cap:883200000";

fn listen(root: &Path) -> Socket {
    Socket::listen(env!("CARGO_BIN_EXE_regatta-state").into(), root, own_user())
}

fn wish(text: &str) -> Wish {
    text.parse().unwrap()
}

fn refused(outcome: Result<Vec<regatta_state::message::KnobLine>, HelperError>) -> String {
    match outcome {
        Err(HelperError::Refused { why, .. }) => why,
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
fn everything_is_set_read_back_and_put_back_to_the_byte() {
    let root = settable_orin();
    let socket = listen(root.path());
    let before = bytes_of(root.path());
    let mut helper = Helper::connect(&socket.path()).unwrap();
    let lines = helper.apply(&wish(EVERYTHING)).unwrap();
    assert!(
        lines.iter().all(|line| line.holds() && line.wanted.is_some()),
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
    assert!(refused(helper.apply(&wish("fan=1"))).contains("set already"));
    let back = helper.restore().unwrap();
    assert!(
        !back.is_empty() && back.iter().all(regatta_state::message::KnobLine::holds),
        "{back:?}"
    );
    assert_eq!(bytes_of(root.path()), before);
    assert!(!socket.journal().exists());
}

#[test]
fn highest_clocks_are_the_hardwares_and_bounds_never_cross() {
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
    let mut helper = Helper::connect(&socket.path()).unwrap();
    helper
        .apply(&wish("power-mode=MAXN cpu=lock:max gpu=lock:max memory=lock:max"))
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
    eventually("the helper to put back what its agent left", || {
        bytes_of(root.path()) == before
    });
}

#[test]
fn a_knob_that_does_not_take_refuses_the_state_and_undoes_the_rest() {
    let root = settable_orin();
    let socket = listen(root.path());
    let before = bytes_of(root.path());
    let (done, file) = (AtomicBool::new(false), root.path().join(GPU_MIN));
    // TWIN of a service that takes the clock back.
    let why = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if fs::read(&file).unwrap() == b"612000000\n" {
                    fs::write(&file, "306000000\n").unwrap();
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        let why = refused(Helper::connect(&socket.path()).unwrap().apply(&wish(EVERYTHING)));
        done.store(true, Ordering::Relaxed);
        why
    });
    assert_eq!(why, "gpu-min was set to 612000000, and reads 306000000");
    assert_eq!(bytes_of(root.path()), before);
}

#[test]
fn what_the_board_does_not_have_is_refused_before_it_is_measured() {
    let root = settable_orin();
    let socket = listen(root.path());
    let before = bytes_of(root.path());
    for (asked, said) in [
        ("power-mode=MODE_7W", "nvpmodel.conf has no mode MODE_7W"),
        (
            "fan=9 cpu=lock:577000000",
            "has no clock of 577000; the nearest is 576000",
        ),
        ("gpu=cap:99000000000", "has no clock of 99000000000"),
        ("memory=lock:4000000000", "has no clock of 4000000000"),
        ("cores=13", "1 to 12 cores"),
        ("cores=0", "1 to 12 cores"),
    ] {
        let why = refused(Helper::connect(&socket.path()).unwrap().apply(&wish(asked)));
        assert!(why.contains(said), "{asked}: {why}");
        assert_eq!(bytes_of(root.path()), before, "{asked}");
    }
    // Where core 0 has a switch of its own, as arm64 kernels give it, it is no core more.
    put(root.path(), "sys/devices/system/cpu/cpu0/online", "1\n");
    let why = refused(Helper::connect(&socket.path()).unwrap().apply(&wish("cores=13")));
    assert!(why.contains("1 to 12 cores"), "{why}");
    // As a PC in a virtual machine is: no clock of the processor, no DLA.
    fs::remove_dir_all(root.path().join("sys/devices/system/cpu/cpufreq")).unwrap();
    fs::remove_dir_all(root.path().join("sys/kernel/nvpmodel_clk_cap")).unwrap();
    for (asked, said) in [
        ("cpu=lock:max", "no processor clock that can be set"),
        ("dla=cap:883200000", "no DLA clock that can be set"),
    ] {
        let why = refused(Helper::connect(&socket.path()).unwrap().apply(&wish(asked)));
        assert!(why.contains(said), "{asked}: {why}");
    }
}

#[test]
fn a_helper_killed_in_the_middle_leaves_a_journal_that_the_next_one_follows() {
    let root = settable_orin();
    let socket = listen(root.path());
    let before = bytes_of(root.path());
    // The fan is set, and nvpmodel's twin does not come to an end.
    put(root.path(), "nvpmodel-is-slow", "");
    let mut doomed = Helper::connect(&socket.path()).unwrap();
    let asked = thread::spawn(move || doomed.apply(&wish(EVERYTHING)));
    eventually("the transaction's first change", || {
        get(root.path(), "fan-service") == "inactive"
    });
    eventually("the second", || {
        get(root.path(), "sys/class/hwmon/hwmon1/pwm1") == "200"
    });
    socket.kill_helpers();
    assert!(matches!(asked.join().unwrap(), Err(HelperError::Lost(_))));
    assert!(socket.journal().exists());
    fs::remove_file(root.path().join("nvpmodel-is-slow")).unwrap();
    // Its nvpmodel may still be on its way out.
    thread::sleep(Duration::from_millis(100));
    Helper::connect(&socket.path()).unwrap().restore().unwrap();
    assert_eq!(bytes_of(root.path()), before);
    assert!(!socket.journal().exists());
}

#[test]
fn after_a_reboot_only_what_outlives_it_is_put_back() {
    let root = settable_orin();
    let socket = listen(root.path());
    let status = fs::read(root.path().join("var/lib/nvpmodel/status")).unwrap();
    let mut helper = Helper::connect(&socket.path()).unwrap();
    helper.apply(&wish(EVERYTHING)).unwrap();
    socket.kill_helpers();
    // The kernel has forgotten, and nvpmodel has set its mode again.
    put(root.path(), "proc/sys/kernel/random/boot_id", "boot-2\n");
    put(
        root.path(),
        "sys/kernel/debug/bpmp/debug/clk/emc/mrq_rate_locked",
        "0\n",
    );
    put(root.path(), "sys/kernel/nvpmodel_clk_cap/dla0_core", "7\n");
    let back = Helper::connect(&socket.path()).unwrap().restore().unwrap();
    let knobs: Vec<String> = back.iter().map(|line| line.knob.to_string()).collect();
    assert_eq!(knobs, ["power-mode"]);
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
        Helper::connect(&socket.path())
            .unwrap()
            .restore()
            .unwrap()
            .is_empty(),
        "once"
    );
}

#[test]
fn one_run_at_a_time_holds_the_state_and_others_may_look() {
    let root = settable_orin();
    let socket = listen(root.path());
    let mut first = Helper::connect(&socket.path()).unwrap();
    first.apply(&wish("gpu=lock:max")).unwrap();
    let mut second = Helper::connect(&socket.path()).unwrap();
    assert!(refused(second.apply(&wish("fan=9"))).contains("another run holds"));
    let seen = second.read(&[]).unwrap();
    assert!(
        seen.iter().any(|line| line.knob.to_string() == "memory-rate"),
        "{seen:?}"
    );
    first.restore().unwrap();
    second.apply(&wish("fan=9")).unwrap();
}

#[test]
fn a_stranger_is_sent_away_before_a_word_is_read() {
    let root = settable_orin();
    let stranger = if own_user() == 65_534 { 1 } else { 65_534 };
    let socket = Socket::listen(env!("CARGO_BIN_EXE_regatta-state").into(), root.path(), stranger);
    let before = bytes_of(root.path());
    let outcome = Helper::connect(&socket.path()).unwrap().apply(&wish(EVERYTHING));
    // The refusal may be overtaken by the closed connection.
    match outcome {
        Err(HelperError::Refused { why, .. }) => assert!(why.contains("may not set"), "{why}"),
        Err(HelperError::Lost(_)) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(bytes_of(root.path()), before);
}

#[test]
fn words_that_are_no_request_set_nothing() {
    let root = settable_orin();
    let socket = listen(root.path());
    let before = bytes_of(root.path());
    for (said, answer) in [
        ("2 apply fan=9\n", "refused this regatta-state speaks version 1"),
        ("1 write /sys/class/devfreq 7\n", "refused `1 write"),
        ("1 apply fan=9 path=/etc/passwd\n", "refused `1 apply"),
        ("\n", "refused `` is no request"),
    ] {
        let mut stream = UnixStream::connect(socket.path()).unwrap();
        stream.write_all(said.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        assert!(line.starts_with(answer), "{said}: {line}");
    }
    // A line without an end, and bytes that are no text, end the visit.
    for said in [vec![b'x'; 4096], vec![0xff, 0xfe, b'\n']] {
        let mut stream = UnixStream::connect(socket.path()).unwrap();
        let _ = stream.write_all(&said);
        let mut line = String::new();
        let _ = BufReader::new(&stream).read_line(&mut line);
        assert_eq!(line, "");
    }
    assert_eq!(bytes_of(root.path()), before);
}

#[test]
fn a_helper_that_answers_in_other_words_is_told_from_one_that_is_lost() {
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
        let error = Helper::connect(&socket).unwrap().read(&[]).unwrap_err();
        helper.join().unwrap();
        error.to_string()
    };
    assert!(
        answers(b"knob fan 1 2\n")
            .contains("is of another version: install agent and helper from one package")
    );
    assert!(answers(b"").ends_with("was lost"));
}

#[test]
fn a_journal_that_somebody_else_wrote_is_not_followed() {
    let root = settable_orin();
    let socket = listen(root.path());
    fs::write(socket.journal(), "before ../../etc/passwd x\n").unwrap();
    let why = refused(Helper::connect(&socket.path()).unwrap().apply(&wish("fan=9")));
    assert!(why.contains("cannot be understood"), "{why}");
}
