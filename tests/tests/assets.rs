//! Models and data that the device lacks come from the coordinator over HTTPS: cut, killed, forged, refused and shared. Real
//! binaries in a lab as a user makes it.

#![expect(clippy::expect_used, reason = "test code")]

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use rcgen::ExtendedKeyUsagePurpose;
use regatta_tests::{
    Broker, DEVICE, Lab, eventually, left_out,
    papers::{self, Authority},
    stranger::Stranger,
    succeed_output,
};
use serde_json::Value;

/// A file that takes a moment to move.
const BULK: &str = "bulk.bin";
const BULK_BYTES: u64 = 12 << 20;

/// A lab whose device has an empty scratch directory, served and enrolled but not started.
fn lab_of_a_bare_device() -> Lab {
    let mut lab = Lab::secure(Broker::Embedded).expect("the embedded broker needs nothing");
    // Everything but the assets is reached by another address than the coordinator listens at: what lies between is the
    // test's.
    edit(
        &lab.workspace().join("regatta.toml"),
        &[
            ("host = \"127.0.0.1\"", "host = \"127.0.0.2\""),
            ("\nlisten = \"127.0.0.1:", "\nlisten = \"0.0.0.0:"),
            ("enrol_listen = \"127.0.0.1:", "enrol_listen = \"0.0.0.0:"),
        ],
    );
    let config = lab.device_directory().join("agent.toml");
    let shared = format!("scratch = \"{}\"", lab.scratch().display());
    edit(&config, &[(&shared, "scratch = \"scratch\"")]);
    fs::create_dir_all(lab.device_directory().join("scratch")).expect("a directory of the lab");
    lab.start_coordinator();
    lab.enrol_device();
    lab
}

fn edit(path: &PathBuf, changes: &[(&str, &str)]) {
    let mut text = fs::read_to_string(path).expect("a configuration");
    for (from, to) in changes {
        assert!(text.contains(from), "{} lacks {from}", path.display());
        text = text.replace(from, to);
    }
    fs::write(path, text).expect("a configuration");
}

fn json(lab: &Lab, words: &[&str]) -> Value {
    let output = succeed_output(lab.regatta().args(words).args(["--format", "json"]));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Keeps a large file for devices; its SHA-256.
fn add_bulk(lab: &Lab) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let bytes: Vec<u8> = (0..BULK_BYTES / 8).flat_map(|_| noise()).collect();
    fs::write(lab.scratch().join(BULK), bytes).expect("a large file");
    let added = json(lab, &["asset", "add", BULK]);
    added["assets"][0]["sha256"].as_str().expect("a hash").to_owned()
}

fn ask(lab: &Lab, words: &[&str]) -> String {
    let common = ["run", "--device", DEVICE, "--benchmark", "digits", "--no-wait"];
    let asked = json(lab, &[&common, words].concat());
    asked["runs"][0]["run"].as_str().expect("a run").to_owned()
}

/// A run that needs the large file and nothing else.
fn ask_for_bulk(lab: &Lab) -> String {
    let words = [
        "--engine",
        "sim",
        "--scenario",
        "Offline",
        "--duration",
        "300ms",
        "--asset",
        BULK,
    ];
    ask(lab, &words)
}

/// Waits for a run's end; its phase and reason.
fn end_of(lab: &Lab, run: &str) -> (String, String) {
    let mut last = Value::Null;
    eventually(&format!("run {run} to end"), 90, || {
        last = json(lab, &["runs", "show", run]);
        !last["recorded"].is_null()
    });
    let text = |key: &str| last[key].as_str().unwrap_or_default().to_owned();
    (text("phase"), text("reason"))
}

fn assets_port(lab: &Lab) -> u16 {
    let config = fs::read_to_string(lab.workspace().join("regatta.toml")).expect("regatta.toml");
    let line = config
        .lines()
        .find_map(|line| line.strip_prefix("assets_listen = \"127.0.0.1:"));
    line.and_then(|rest| rest.trim_end_matches('"').parse().ok())
        .expect("a port")
}

fn kept(lab: &Lab, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(lab.state().join("assets").join(kind));
    entries
        .into_iter()
        .flatten()
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

/// Where a file lies at the coordinator.
fn object(lab: &Lab, sha256: &str) -> PathBuf {
    lab.workspace().join("assets").join(&sha256[..2]).join(sha256)
}

/// What lies between the device and the coordinator's assets: counts what goes down, cuts connections, holds bytes back.
struct Between {
    down: Arc<AtomicU64>,
    hold_at: Arc<AtomicU64>,
}

impl Between {
    /// Begins to relay; connections are cut when so many bytes have gone down in all.
    fn start(lab: &Lab, cut_at: &'static [u64]) -> Self {
        let port = assets_port(lab);
        let listener = TcpListener::bind(("127.0.0.2", port)).expect("an address of loopback");
        let between = Self {
            down: Arc::new(AtomicU64::new(0)),
            hold_at: Arc::new(AtomicU64::new(u64::MAX)),
        };
        let (down, hold_at) = (Arc::clone(&between.down), Arc::clone(&between.hold_at));
        thread::spawn(move || {
            let mut cuts = cut_at.iter().copied();
            let mut cut = cuts.next();
            for device in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
                    continue;
                };
                let (mut up_from, mut up_to) = (
                    device.try_clone().expect("a socket"),
                    server.try_clone().expect("a socket"),
                );
                thread::spawn(move || std::io::copy(&mut up_from, &mut up_to));
                if pass_down(server, device, &down, &hold_at, cut) {
                    cut = cuts.next();
                }
            }
        });
        between
    }

    /// Bytes that went down.
    fn down(&self) -> u64 {
        self.down.load(Ordering::Relaxed)
    }

    /// Lets no more go down than so many bytes.
    fn hold_at(&self, bytes: u64) {
        self.hold_at.store(bytes, Ordering::Relaxed);
    }

    /// Waits until so many bytes are held back.
    fn wait_until_held(&self) {
        let at = self.hold_at.load(Ordering::Relaxed);
        eventually("a part to be here", 60, || self.down() >= at);
    }
}

/// Passes bytes on, until there are no more or it is time to cut: then `true`.
fn pass_down(
    mut server: TcpStream,
    mut device: TcpStream,
    counted: &AtomicU64,
    hold_at: &AtomicU64,
    cut: Option<u64>,
) -> bool {
    let mut piece = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = server.read(&mut piece) {
        while counted.load(Ordering::Relaxed) >= hold_at.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(5));
        }
        if device.write_all(&piece[..read]).is_err() {
            break;
        }
        let down = counted.fetch_add(read as u64, Ordering::Relaxed) + read as u64;
        if cut.is_some_and(|at| down >= at) {
            let _ = device.shutdown(Shutdown::Both);
            return true;
        }
    }
    let _ = device.shutdown(Shutdown::Both);
    false
}

#[test]
fn a_device_gets_what_it_lacks_and_two_runs_share_it() {
    let mut lab = lab_of_a_bare_device();
    let between = Between::start(&lab, &[]);
    let added = json(&lab, &["asset", "add", "--benchmark", "digits"]);
    let kinds: Vec<_> = added["assets"]
        .as_array()
        .expect("assets")
        .iter()
        .map(|a| a["kind"].clone())
        .collect();
    assert!(
        kinds.contains(&"file".into()) && kinds.contains(&"tree".into()),
        "{added}"
    );
    lab.start_device();
    lab.wait_for_device();
    let words = [
        "--engine",
        "tract",
        "--scenario",
        "Offline",
        "--mode",
        "AccuracyOnly",
    ];
    let first = ask(&lab, &words);
    assert_eq!(end_of(&lab, &first).0, "done", "{}", end_of(&lab, &first).1);
    let after_one = between.down();
    assert!(
        after_one > 100_000,
        "it came from the coordinator: {after_one} bytes"
    );
    let second = ask(&lab, &words);
    assert_eq!(end_of(&lab, &second).0, "done", "{}", end_of(&lab, &second).1);
    assert_eq!(between.down(), after_one, "not a byte for the second");
    let accuracy = |run: &str| json(&lab, &["runs", "show", run])["accuracy"].clone();
    assert_eq!(accuracy(&first), accuracy(&second));
    assert!(
        accuracy(&first)["value"].as_f64().expect("an accuracy") > 90.0,
        "{}",
        accuracy(&first)
    );
    assert!(kept(&lab, "part").is_empty());
    // What no run needs goes at the coordinator; the device keeps its copy.
    for asset in json(&lab, &["asset", "list"])["assets"]
        .as_array()
        .expect("assets")
    {
        json(
            &lab,
            &["asset", "remove", asset["path"].as_str().expect("a path")],
        );
    }
    let swept = json(&lab, &["asset", "gc"]);
    assert!(swept["files"].as_u64() > Some(500), "{swept}");
    assert_eq!(
        (kept(&lab, "tree").len(), kept(&lab, "file").is_empty()),
        (1, false)
    );
}

#[test]
fn a_cut_link_and_a_killed_agent_cost_nothing_that_was_here() {
    let mut lab = lab_of_a_bare_device();
    let between = Between::start(&lab, &[3 << 20, 6 << 20]);
    let sha256 = add_bulk(&lab);
    lab.start_device();
    lab.wait_for_device();
    between.hold_at(8 << 20);
    let run = ask_for_bulk(&lab);
    between.wait_until_held();
    assert_eq!(json(&lab, &["runs", "show", &run])["phase"], "preparing");
    if let Some(mut device) = lab.device.take() {
        device.kill();
    }
    between.hold_at(u64::MAX);
    lab.start_device();
    let (phase, reason) = end_of(&lab, &run);
    assert_eq!(phase, "done", "{reason}");
    // A handshake for each connection, TLS records around the bytes, and what was in the sockets of the killed agent.
    let most = BULK_BYTES + BULK_BYTES / 100 + (4 << 20);
    assert!(
        between.down() < most,
        "{} bytes came down for {BULK_BYTES}",
        between.down()
    );
    let file = lab.state().join("assets/file").join(sha256);
    let (here, there) = (fs::read(file), fs::read(lab.scratch().join(BULK)));
    assert!(here.expect("the device's copy") == there.expect("the original"));
}

#[test]
fn wrong_bytes_are_not_kept_and_a_good_copy_mends_it() {
    let mut lab = lab_of_a_bare_device();
    let _between = Between::start(&lab, &[]);
    let sha256 = add_bulk(&lab);
    let object = object(&lab, &sha256);
    let mut bytes = fs::read(&object).expect("the coordinator's copy");
    bytes[5_345_678] ^= 1;
    fs::write(&object, bytes).expect("a bad copy");
    lab.start_device();
    lab.wait_for_device();
    let (phase, reason) = end_of(&lab, &ask_for_bulk(&lab));
    assert_eq!(phase, "failed");
    assert!(reason.contains("`bulk.bin` has another SHA-256"), "{reason}");
    assert!(kept(&lab, "file").is_empty());
    // Gone altogether.
    fs::remove_file(&object).expect("the coordinator's copy");
    let (phase, reason) = end_of(&lab, &ask_for_bulk(&lab));
    assert_eq!(phase, "failed");
    assert!(
        reason.contains("the coordinator has no such asset (404)"),
        "{reason}"
    );
    json(&lab, &["asset", "add", BULK]);
    let (phase, reason) = end_of(&lab, &ask_for_bulk(&lab));
    assert_eq!(phase, "done", "{reason}");
    assert_eq!(kept(&lab, "file").len(), 1);
}

#[test]
fn a_run_whose_assets_do_not_fit_says_so_and_one_that_is_aborted_stops() {
    let mut lab = lab_of_a_bare_device();
    let between = Between::start(&lab, &[]);
    add_bulk(&lab);
    let config = lab.device_directory().join("agent.toml");
    edit(
        &config,
        &[("min_free_mib = 1\n", "min_free_mib = 1\nassets_max_mib = 10\n")],
    );
    lab.start_device();
    lab.wait_for_device();
    let (phase, reason) = end_of(&lab, &ask_for_bulk(&lab));
    assert_eq!(phase, "failed");
    assert!(
        reason.contains("12 MiB of assets are missing and 10 MiB are free for them"),
        "{reason}"
    );
    assert_eq!(between.down(), 0, "nobody was asked");

    lab.device = None;
    edit(&config, &[("assets_max_mib = 10\n", "")]);
    lab.start_device();
    between.hold_at(2 << 20);
    let run = ask_for_bulk(&lab);
    between.wait_until_held();
    let _ = succeed_output(lab.regatta().args(["runs", "abort", &run]));
    assert_eq!(end_of(&lab, &run).0, "aborted");
    // What has come is kept for the next one that wants it.
    assert_eq!((kept(&lab, "part").len(), kept(&lab, "file").len()), (1, 0));
}

#[test]
fn nobody_else_is_served_and_a_removed_device_no_longer() {
    let mut lab = lab_of_a_bare_device();
    let between = Between::start(&lab, &[]);
    let sha256 = add_bulk(&lab);
    let port = assets_port(&lab);
    let authority = Authority::of_lab(&lab.workspace());
    let get = |papers: Option<&regatta_tests::stranger::Papers>, address: &str, header: &str| {
        Stranger::reach(port, &authority.certificate, papers)?.get(address, header)
    };
    let file = format!("/v1/file/{sha256}");
    assert!(get(None, &file, "").is_err(), "no certificate");
    let client = ExtendedKeyUsagePurpose::ClientAuth;
    let forged = Authority::self_made(&authority)
        .issue(None, client.clone(), 2100)
        .0;
    assert!(get(Some(&forged), &file, "").is_err(), "another authority");
    let never_enrolled = authority.issue(None, client, 2100).0;
    let said = get(Some(&never_enrolled), &file, "").expect("an answer");
    assert!(said.starts_with("HTTP/1.1 403"), "{said}");
    let (device, _) = papers::of_device(&lab.state());
    for (address, header, status) in [
        (file.as_str(), "Range: bytes=12582908-\r\n", "206"),
        (&file, "Range: bytes=12582912-\r\n", "416"),
        (&file, "Range: bytes=0-5,7-9\r\n", "400"),
        ("/v1/file/../../keys/ca.key", "", "404"),
        ("/", "", "404"),
        (&format!("/v1/tree/{sha256}"), "", "404"),
        (&format!("/v1/file/{}", "0".repeat(64)), "", "404"),
    ] {
        let said = get(Some(&device), address, header).expect("an answer");
        assert!(
            said.starts_with(&format!("HTTP/1.1 {status}")),
            "{address} {header}: {said}"
        );
    }
    // Removed in the middle of what it gets.
    lab.start_device();
    lab.wait_for_device();
    between.hold_at(1 << 20);
    let run = ask_for_bulk(&lab);
    between.wait_until_held();
    let _ = succeed_output(lab.regatta().args(["device", "remove", DEVICE]));
    eventually("the coordinator to see it", 20, || {
        lab.coordinator
            .as_ref()
            .is_some_and(|coordinator| coordinator.output().contains("it is no longer let in"))
    });
    between.hold_at(u64::MAX);
    let job = lab.state().join("runs").join(&run).join("job.json");
    eventually("the device to hear of it", 60, || {
        fs::read_to_string(&job).is_ok_and(|job| job.contains("this device is not enrolled here (403)"))
    });
    assert!(between.down() < BULK_BYTES);
    let said = get(Some(&device), &file, "").expect("an answer");
    assert!(said.starts_with("HTTP/1.1 403"), "{said}");
}

/// A small disk for the device's assets, gone with the test.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None`, with the reason printed, without the right to mount.
    fn mount(place: PathBuf, mib: u64) -> Option<Self> {
        fs::create_dir_all(&place).expect("a directory of the lab");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "none"])
            .arg(&place)
            .stderr(Stdio::null())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            left_out("small disks want root, for tmpfs");
            return None;
        }
        Some(Self(place))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: the agent may still have a file open there.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_disk_that_somebody_fills_meanwhile_fails_the_run_and_not_those_after_it() {
    let mut lab = lab_of_a_bare_device();
    let Some(disk) = SmallDisk::mount(lab.state().join("assets"), 16) else {
        return;
    };
    let between = Between::start(&lab, &[]);
    add_bulk(&lab);
    lab.start_device();
    lab.wait_for_device();
    between.hold_at(2 << 20);
    let run = ask_for_bulk(&lab);
    between.wait_until_held();
    let filler = disk.0.join("somebody");
    // As much as fits.
    let _ = fs::write(&filler, vec![0; 16 << 20]);
    between.hold_at(u64::MAX);
    let (phase, reason) = end_of(&lab, &run);
    assert_eq!(phase, "failed");
    assert!(reason.contains("No space left on device"), "{reason}");
    assert!(kept(&lab, "part").is_empty(), "half an asset is in nobody's way");
    fs::remove_file(filler).expect("a file of the test");
    let (phase, reason) = end_of(&lab, &ask_for_bulk(&lab));
    assert_eq!(phase, "done", "{reason}");
    drop(lab);
}
