//! Tests of the system calls before an acknowledgement. Bytes are written, flushed and recorded in the store before they are
//! acknowledged. A complete file is renamed, and its directory flushed, before it is declared equal.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{collections::BTreeMap, process::Command};

use regatta_test_support::strace::Strace;
use regatta_wire::{
    frame,
    message::{Ack, Message as _, StreamVerdict},
};
use support::{
    Dice, coordinator::Coordinator, delivering::Faults, device::SimulatedDevice, eventually,
    mosquitto::Mosquitto,
};

/// The calls that write, flush, rename and send.
const CALLS: &str = "write,writev,pwrite64,pwritev,sendto,sendmsg,fsync,fdatasync,rename,renameat,renameat2";

/// The bytes of each stream that have reached a step; [`u64::MAX`] for a complete file under its final name.
type Progress = BTreeMap<String, u64>;

/// The state of the coordinator's disk after its system calls so far.
#[derive(Default)]
struct Disk {
    written: Progress,
    flushed: Progress,
    renamed: Progress,
    recorded: Progress,
    /// What a running flush or commit covers, by thread and path.
    under_way: BTreeMap<(String, String), Progress>,
    /// Acknowledgements that were checked.
    acks: usize,
    equal: usize,
}

impl Disk {
    /// Applies the begin of a call.
    fn begins(&mut self, thread: &str, call: &str, arguments: &str) {
        let path = path_of(arguments);
        let covered = match call {
            "fsync" | "fdatasync" if path.contains("/partial/") => self.written.clone(),
            "fsync" | "fdatasync" if path.ends_with("/files") => self.renamed.clone(),
            // A commit covers what was flushed when its first page was written, not when its last was.
            "pwrite64" | "pwritev" if path.ends_with("-wal") => {
                let key = (thread.to_owned(), path);
                let flushed = self.flushed.clone();
                self.under_way.entry(key).or_insert(flushed);
                return;
            }
            "write" | "writev" | "sendto" | "sendmsg" if path.starts_with("socket:") => {
                return self.acknowledges(&bytes_of(arguments));
            }
            _ => return,
        };
        self.under_way.insert((thread.to_owned(), path), covered);
    }

    /// Applies the end of a call.
    fn ends(&mut self, thread: &str, call: &str, arguments: &str, result: &str) {
        let path = path_of(arguments);
        match call {
            "write" if path.contains("/partial/") => {
                *self.written.entry(stream_of(&path)).or_default() += result.parse::<u64>().unwrap();
            }
            "rename" | "renameat" | "renameat2" => {
                let names = strings_of(arguments);
                if names.iter().any(|name| name.contains("/partial/")) {
                    self.renamed.insert(stream_of(names.last().unwrap()), u64::MAX);
                }
            }
            "fsync" | "fdatasync" => {
                assert_eq!(result, "0");
                let Some(covered) = self.under_way.remove(&(thread.to_owned(), path.clone())) else {
                    return;
                };
                let target = if path.ends_with("-wal") {
                    &mut self.recorded
                } else {
                    &mut self.flushed
                };
                for (stream, length) in covered {
                    // A flush of one stream does not cover another.
                    let own =
                        path.ends_with("-wal") || path.ends_with("/files") || stream_of(&path) == stream;
                    if own {
                        let known = target.entry(stream).or_default();
                        *known = length.max(*known);
                    }
                }
            }
            _ => {}
        }
    }

    /// Checks that every acknowledgement in the sent bytes covers only recorded data.
    fn acknowledges(&mut self, sent: &[u8]) {
        for at in 0..sent.len() {
            let Ok(length) = frame::stated_length(&sent[at..]) else {
                continue;
            };
            let frame = sent.get(at..at + frame::HEADER_LEN + length).unwrap_or_default();
            let Ok(ack) = Ack::from_frame(frame) else { continue };
            let recorded = self.recorded.get(ack.stream.as_str()).copied().unwrap_or(0);
            assert!(
                recorded >= ack.committed,
                "{} was acknowledged to {} and recorded to {recorded}",
                ack.stream,
                ack.committed
            );
            self.acks += 1;
            if ack.verdict == Some(StreamVerdict::Equal) {
                assert_eq!(
                    recorded,
                    u64::MAX,
                    "{} was called equal before it had its name",
                    ack.stream
                );
                self.equal += 1;
            }
        }
    }
}

/// The path, or the socket, behind the first descriptor.
fn path_of(arguments: &str) -> String {
    let inside = arguments
        .split_once('<')
        .and_then(|(_, rest)| rest.split_once('>'));
    let inside = inside.map_or("", |(path, _)| path);
    // strace writes paths in hexadecimal too.
    String::from_utf8_lossy(&unescape(inside)).into_owned()
}

/// Returns a stream's name, which is its file's.
fn stream_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

fn strings_of(arguments: &str) -> Vec<String> {
    let quoted = arguments.split('"').skip(1).step_by(2);
    quoted
        .map(|text| String::from_utf8_lossy(&unescape(text)).into_owned())
        .collect()
}

/// Returns all bytes that a call passes to the kernel.
fn bytes_of(arguments: &str) -> Vec<u8> {
    arguments
        .split('"')
        .skip(1)
        .step_by(2)
        .flat_map(unescape)
        .collect()
}

fn unescape(text: &str) -> Vec<u8> {
    if !text.contains("\\x") {
        return text.as_bytes().to_vec();
    }
    let digits = text.split("\\x").filter(|digits| !digits.is_empty());
    digits
        .map(|digits| u8::from_str_radix(digits, 16).unwrap())
        .collect()
}

/// Applies strace's lines, `THREAD CALL(ARGUMENTS) = RESULT`. A call that others interrupt has two lines.
fn play(lines: &str) -> Disk {
    let mut disk = Disk::default();
    let mut unfinished: BTreeMap<&str, (&str, String)> = BTreeMap::new();
    for line in lines.lines() {
        let (thread, rest) = line.split_once(' ').unwrap();
        let rest = rest.trim_start();
        if let Some(resumed) = rest.strip_prefix("<... ") {
            if let Some((call, arguments)) = unfinished.remove(thread) {
                let result = resumed.rsplit_once(" = ").map_or("", |(_, result)| result);
                disk.ends(thread, call, &arguments, result.split(' ').next().unwrap());
            }
            continue;
        }
        let Some((call, arguments)) = rest.split_once('(') else {
            continue;
        };
        if let Some(arguments) = arguments.strip_suffix(" <unfinished ...>") {
            disk.begins(thread, call, arguments);
            unfinished.insert(thread, (call, arguments.to_owned()));
        } else if let Some((arguments, result)) = arguments.rsplit_once(" = ") {
            disk.begins(thread, call, arguments);
            disk.ends(thread, call, arguments, result.split(' ').next().unwrap());
        }
    }
    disk
}

#[test]
fn bytes_are_written_flushed_and_recorded_before_they_are_acknowledged() {
    // Over plain TCP and its own broker, so that sent bytes can be read.
    let Some(mosquitto) = Mosquitto::start() else {
        return;
    };
    let Some(strace) = Strace::find() else { return };
    let mut coordinator = Coordinator::external(mosquitto.port);
    let regatta = coordinator.regatta(&["serve"]);
    let mut traced = strace.listing_bytes(env!("CARGO_BIN_EXE_regatta"), CALLS);
    traced.args(regatta.get_args());
    take_over_environment(&regatta, &mut traced);
    coordinator.serve_by(traced);
    let mut device = SimulatedDevice::connect(mosquitto.port, 4);
    device.say_hello(Vec::new());
    eventually("the device", 30, || {
        coordinator.json(&["device", "list"])["devices"][0]["online"].as_bool()
    });
    let requested = coordinator.request_run("PerformanceOnly");
    let (run, files) = device.play(Faults::ALL, &mut Dice::new(11));
    assert_eq!(run.to_string(), requested);
    assert_eq!(coordinator.record(&requested)["delivery"]["complete"], true);
    let disk = play(&strace.seen());
    println!(
        "{} acknowledgements, {} of them of whole files",
        disk.acks, disk.equal
    );
    assert!(
        disk.acks > files.len() && disk.equal >= files.len(),
        "they were seen"
    );
}

fn take_over_environment(from: &Command, to: &mut Command) {
    for (name, value) in from.get_envs() {
        match value {
            Some(value) => to.env(name, value),
            None => to.env_remove(name),
        };
    }
}
