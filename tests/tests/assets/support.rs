//! A lab whose device has no assets, a large file for it, and the assets of both sides.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use regatta_random::SplitMix64;
use regatta_test_requirements::{Requirement, skip};
use regatta_tests::{Broker, Lab, eventually};
use serde_json::Value;

/// A file whose transfer takes a moment.
pub(crate) const BULK: &str = "bulk.bin";
pub(crate) const BULK_BYTES: u64 = 12 << 20;

/// A lab whose device has an empty scratch directory, served and enrolled but not started.
pub(crate) fn lab_of_a_bare_device() -> Lab {
    let mut lab = Lab::secure(Broker::Embedded).expect("the embedded broker needs nothing");
    // The device reaches all services except the assets by another address, where the test can relay.
    edit(
        &lab.workspace().join("regatta.toml"),
        &[
            ("host = \"127.0.0.1\"", "host = \"127.0.0.2\""),
            ("\nlisten = \"127.0.0.1:", "\nlisten = \"0.0.0.0:"),
            ("enroll_listen = \"127.0.0.1:", "enroll_listen = \"0.0.0.0:"),
        ],
    );
    let config = lab.device_directory().join("agent.toml");
    let shared = format!("scratch = \"{}\"", lab.scratch().display());
    edit(&config, &[(&shared, "scratch = \"scratch\"")]);
    fs::create_dir_all(lab.device_directory().join("scratch")).expect("a directory of the lab");
    lab.start_coordinator();
    lab.enroll_device();
    lab
}

/// Replaces texts of a configuration, which must contain all of them.
pub(crate) fn edit(path: &Path, changes: &[(&str, &str)]) {
    let mut text = fs::read_to_string(path).expect("a configuration");
    for (from, to) in changes {
        assert!(text.contains(from), "{} has no {from}", path.display());
        text = text.replace(from, to);
    }
    fs::write(path, text).expect("a configuration");
}

/// Adds a large file as an asset and returns its SHA-256.
pub(crate) fn add_bulk(lab: &Lab) -> String {
    let bytes = SplitMix64::new(0).bytes(BULK_BYTES as usize);
    fs::write(lab.scratch().join(BULK), bytes).expect("a large file");
    let added = lab.json(&["asset", "add", BULK]);
    added["assets"][0]["sha256"].as_str().expect("a hash").to_owned()
}

/// Requests a run that only needs the large file.
pub(crate) fn request_bulk_run(lab: &Lab) -> String {
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
    lab.request_run(&words)
}

/// Waits for a run's end and returns its phase and reason.
pub(crate) fn end_of(lab: &Lab, run: &str) -> (String, String) {
    let mut last = Value::Null;
    eventually(&format!("run {run} to end"), 90, || {
        last = lab.show(run);
        !last["recorded"].is_null()
    });
    let text = |key: &str| last[key].as_str().unwrap_or_default().to_owned();
    (text("phase"), text("reason"))
}

/// Returns the port of the coordinator's assets.
pub(crate) fn assets_port(lab: &Lab) -> u16 {
    let config = fs::read_to_string(lab.workspace().join("regatta.toml")).expect("regatta.toml");
    let line = config
        .lines()
        .find_map(|line| line.strip_prefix("assets_listen = \"127.0.0.1:"));
    line.and_then(|rest| rest.trim_end_matches('"').parse().ok())
        .expect("a port")
}

/// Returns the device's assets of a kind: `file`, `tree`, or a `part` of either.
pub(crate) fn kept(lab: &Lab, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(lab.state().join("assets").join(kind));
    entries
        .into_iter()
        .flatten()
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

/// Returns the path of a file at the coordinator.
pub(crate) fn object(lab: &Lab, sha256: &str) -> PathBuf {
    lab.workspace().join("assets").join(&sha256[..2]).join(sha256)
}

/// A small disk for the device's assets, until the test ends.
pub(crate) struct SmallDisk(pub(crate) PathBuf);

impl SmallDisk {
    /// Mounts a disk. Records a skipped test without root.
    pub(crate) fn mount(place: PathBuf, mib: u64) -> Option<Self> {
        fs::create_dir_all(&place).expect("a directory of the lab");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "none"])
            .arg(&place)
            .stderr(Stdio::null())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            skip(Requirement::Right, "mounting a tmpfs needs root");
            return None;
        }
        Some(Self(place))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A lazy unmount: the agent may still have a file open there.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
