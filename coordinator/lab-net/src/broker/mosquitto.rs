//! Writes a configuration with which Debian's mosquitto replaces the embedded broker. It requires TLS 1.3 and client certificates of the
//! lab. Each device is limited to its own topics and session, and removed devices have no rights. This module does not start the broker.
//!
//! ```text
//! mosquitto/mosquitto.conf   the configuration; it may be edited
//! mosquitto/acl              who may do what: written anew when a device is removed
//! mosquitto/crl.pem          certificates that no longer count: likewise
//! mosquitto/server.{pem,key} the broker's identity
//! mosquitto/ca.pem           the lab's authority
//! ```
//!
//! mosquitto uses the certificate's name as user name and as client id. A device's rights and session therefore follow from its
//! certificate. mosquitto rereads `acl` on SIGHUP, and reads `crl.pem` when it starts.

use std::{fmt::Write as _, fs, net::SocketAddr, path::Path};

use anyhow::Context as _;
use regatta_wire::{frame, topic::ROOT};
use rustix::process::{Pid, Signal, kill_process};

use regatta_fsutil::atomic_file::AtomicFile;

use crate::keys::{COORDINATOR, Keys, write_new};
use regatta_lab_store::Store;

const ACCESS: &str = "acl";
const REVOKED: &str = "crl.pem";
const PID: &str = "mosquitto.pid";

/// Writes a new configuration to `directory`, and creates the directory.
///
/// # Errors
/// Returns an error when a file exists or cannot be written, or when the certificate cannot be created.
pub fn write(
    directory: &Path,
    keys: &Keys,
    store: &Store,
    listen: SocketAddr,
    hosts: &[String],
) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let directory = std::path::absolute(directory)?;
    let identity = keys.authority().server(hosts)?;
    for (name, text, mode) in [
        ("ca.pem", keys.authority().pem(), 0o644),
        ("server.pem", &identity.certificate, 0o644),
        ("server.key", &identity.key, 0o600),
        ("mosquitto.conf", &configuration(&directory, listen), 0o644),
    ] {
        let path = directory.join(name);
        write_new(&path, text, mode).with_context(|| format!("cannot write {}", path.display()))?;
    }
    write_access(&directory, keys, store)
}

/// Writes the access rules and the revocation list from the store's members.
///
/// # Errors
/// Returns an error when the store fails, the list cannot be signed or a file cannot be written.
pub fn write_access(directory: &Path, keys: &Keys, store: &Store) -> anyhow::Result<()> {
    let removed: Vec<String> = store
        .members()
        .all()?
        .into_iter()
        .filter(|member| member.removed.is_some())
        .map(|member| member.device.to_string())
        .collect();
    let revoked = keys.authority().revocations(
        &store.members().revoked_serials()?,
        store.numbers().next("revocations")?,
    )?;
    for (name, text) in [(ACCESS, access(&removed)), (REVOKED, revoked)] {
        let path = directory.join(name);
        AtomicFile::new(&path)
            .write(text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Makes a running mosquitto reread its access rules. Returns `false` when it is not running or may not be signalled.
pub fn reload(directory: &Path) -> bool {
    let pid = fs::read_to_string(directory.join(PID)).ok();
    let pid = pid
        .and_then(|text| text.trim().parse().ok())
        .and_then(Pid::from_raw);
    // A stale pid file may name a process of another program.
    let is_mosquitto = |pid: Pid| {
        fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero()))
            .is_ok_and(|name| name.trim() == "mosquitto")
    };
    pid.filter(|pid| is_mosquitto(*pid))
        .is_some_and(|pid| kill_process(pid, Signal::HUP).is_ok())
}

fn configuration(directory: &Path, listen: SocketAddr) -> String {
    let place = directory.display();
    // The largest frame, its topic and MQTT's own fields.
    let packet = frame::HEADER_LEN + frame::MAX_BODY + 1024;
    format!(
        "# mosquitto for a Regatta lab: mosquitto -c {place}/mosquitto.conf\n\
         # Started as root, it continues as the user who owns these files.\n\
         {user}per_listener_settings false\n\
         pid_file {place}/{PID}\n\
         listener {port} {address}\n\
         \n\
         # TLS 1.3 and a certificate of the lab, or nothing.\n\
         cafile {place}/ca.pem\n\
         certfile {place}/server.pem\n\
         keyfile {place}/server.key\n\
         crlfile {place}/{REVOKED}\n\
         tls_version tlsv1.3\n\
         require_certificate true\n\
         allow_anonymous false\n\
         \n\
         # The certificate's name is user and client id: a device has its own rights and its own session only.\n\
         use_identity_as_username true\n\
         use_username_as_clientid true\n\
         acl_file {place}/{ACCESS}\n\
         \n\
         # Nothing needs to survive here: devices repeat what the coordinator has not acknowledged.\n\
         persistence false\n\
         max_packet_size {packet}\n\
         max_inflight_messages 64\n\
         max_queued_messages 10000\n",
        user = own_name().map_or_else(String::new, |name| format!("user {name}\n")),
        port = listen.port(),
        address = listen.ip(),
    )
}

/// Returns the user name of this process, if `/etc/passwd` has one.
fn own_name() -> Option<String> {
    let id = rustix::process::geteuid().as_raw().to_string();
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let of_id = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    };
    users.lines().find_map(of_id)
}

fn access(removed: &[String]) -> String {
    let mut text = format!(
        "# Written by regatta; changes are lost when a device is removed.\n\
         user {COORDINATOR}\n\
         topic readwrite {ROOT}/#\n"
    );
    for device in removed {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "\n# removed\nuser {device}\ntopic deny #\n");
    }
    let _ = write!(
        text,
        "\n# Every device, its own topics only.\n\
         pattern write {ROOT}/%u/hello\n\
         pattern write {ROOT}/%u/telemetry\n\
         pattern write {ROOT}/%u/state/+\n\
         pattern write {ROOT}/%u/log/+/+\n\
         pattern read {ROOT}/%u/cmd/+\n\
         pattern read {ROOT}/%u/ack/+\n"
    );
    text
}
