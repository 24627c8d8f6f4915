//! The places of the two sides: both on loopback, or each in a network namespace with a shaped veth pair between them.
//!
//! The bench makes and removes them. Namespaces and `tc` need root.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use regatta_tests::succeed_output;

use crate::AnyError;

/// Addresses of the two ends of the pair, from a network that RFC 5737 reserves for examples.
const ADDRESSES: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
/// Bits per second of the shaped line.
pub(crate) const LINE: u64 = 1_000_000_000;

/// The place of both sides.
pub(crate) enum Place {
    /// Both sides on 127.0.0.1.
    Loopback,
    /// Two namespaces, the coordinator's and the device's.
    Line {
        /// Their names.
        namespaces: [String; 2],
    },
}

impl Place {
    /// Makes two namespaces and the line between them. Returns `None` without root.
    pub(crate) fn line() -> Result<Option<Self>, AnyError> {
        let id = std::process::id();
        let namespaces = [format!("regatta-lab-{id}"), format!("regatta-boat-{id}")];
        let made = ip(&["netns", "add", &namespaces[0]])
            .stderr(Stdio::null())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        let place = Self::Line {
            namespaces: namespaces.clone(),
        };
        let _ = succeed_output(&mut ip(&["netns", "add", &namespaces[1]]));
        let [lab, boat] = &namespaces;
        let pair = [
            "link", "add", "v0", "netns", lab, "type", "veth", "peer", "name", "v0",
        ];
        let _ = succeed_output(ip(&pair).args(["netns", boat]));
        for (namespace, address) in namespaces.iter().zip(ADDRESSES) {
            for words in [
                vec!["addr", "add", &format!("{address}/24"), "dev", "v0"],
                vec!["link", "set", "v0", "up"],
                vec!["link", "set", "lo", "up"],
            ] {
                let _ = succeed_output(ip(&["-n", namespace]).args(words));
            }
            let rate = LINE.to_string();
            let mut shape = Command::new("tc");
            shape.args(["-n", namespace, "qdisc", "add", "dev", "v0", "root", "tbf"]);
            shape.args(["rate", &rate, "burst", "256kb", "latency", "20ms"]);
            let _ = succeed_output(&mut shape);
        }
        Ok(Some(place))
    }

    /// The coordinator's address.
    pub(crate) const fn coordinator_address(&self) -> &'static str {
        match self {
            Self::Loopback => "127.0.0.1",
            Self::Line { .. } => ADDRESSES[0],
        }
    }

    /// Returns the prefix that runs a command on the coordinator's side.
    pub(crate) fn coordinator_prefix(&self) -> Vec<String> {
        self.prefix(0)
    }

    /// Returns the prefix that runs a command on the device's side.
    pub(crate) fn device_prefix(&self) -> Vec<String> {
        self.prefix(1)
    }

    fn prefix(&self, side: usize) -> Vec<String> {
        match self {
            Self::Loopback => Vec::new(),
            Self::Line { namespaces } => ["ip", "netns", "exec", &namespaces[side]]
                .map(str::to_owned)
                .to_vec(),
        }
    }

    /// Returns a command on the coordinator's side.
    pub(crate) fn coordinator_side(&self, program: &Path) -> Command {
        regatta_tests::prefixed(&self.coordinator_prefix(), program)
    }

    /// Returns a command on the device's side.
    pub(crate) fn device_side(&self, program: &Path) -> Command {
        regatta_tests::prefixed(&self.device_prefix(), program)
    }

    /// Returns the bytes that the device has sent over the line, with all headers; 0 on loopback.
    ///
    /// The shaper counts them. The interface's own counter takes a large buffer for one packet, and omits nearly all headers.
    pub(crate) fn bytes_sent(&self) -> Result<u64, AnyError> {
        let Self::Line { namespaces } = self else {
            return Ok(0);
        };
        let mut command = Command::new("tc");
        command.args(["-n", &namespaces[1], "-s", "-j", "qdisc", "show", "dev", "v0"]);
        let output: serde_json::Value = serde_json::from_slice(&succeed_output(&mut command).stdout)?;
        let bytes = output.pointer("/0/bytes").and_then(serde_json::Value::as_u64);
        Ok(bytes.ok_or("tc does not tell what the shaper has sent")?)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Self::Line { namespaces } = self {
            for namespace in namespaces {
                // Removing either end removes the pair.
                let _ = ip(&["netns", "del", namespace]).status();
                let _ = fs::remove_file(Path::new("/run/netns").join(namespace));
            }
        }
    }
}

fn ip(words: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(words);
    command
}
