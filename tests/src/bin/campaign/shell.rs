//! Debian's tools as the campaign uses them: run one, and say what it said when it fails.

use std::{
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context as _, bail};

/// What the campaign needs beside Regatta: the tool, and its Debian package.
pub(crate) const NEEDED: [(&str, &str); 9] = [
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("nft", "nftables"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("mount", "mount"),
    ("timeout", "coreutils"),
    ("bindfs", "bindfs"),
    ("mosquitto", "mosquitto"),
];

/// Where a tool lies; daemons and network tools are in directories that a user's PATH may lack.
pub(crate) fn find(tool: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(Into::into);
    std::env::split_paths(&path)
        .chain(usual)
        .map(|directory| directory.join(tool))
        .find(|candidate| candidate.is_file())
}

/// A command of a tool.
///
/// # Errors
/// When it is not installed.
pub(crate) fn command(tool: &str) -> anyhow::Result<Command> {
    let path = find(tool).with_context(|| format!("{tool} is not installed"))?;
    Ok(Command::new(path))
}

/// Runs a tool with the words of one line.
///
/// # Errors
/// When it is not there or fails, with what it said.
pub(crate) fn run(line: &str) -> anyhow::Result<()> {
    let mut words = line.split_ascii_whitespace();
    let tool = words.next().unwrap_or_default();
    succeed(command(tool)?.args(words)).map(drop)
}

/// Runs a command that must succeed, and returns what it printed.
///
/// # Errors
/// When it fails, with what it said.
pub(crate) fn succeed(command: &mut Command) -> anyhow::Result<Output> {
    let output = command
        .output()
        .with_context(|| format!("{:?} does not start", command.get_program()))?;
    if !output.status.success() {
        bail!(
            "{command:?}: {}: {}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(output)
}

/// Debian's libfaketime for programs with threads.
pub(crate) fn libfaketime() -> Option<std::path::PathBuf> {
    let libraries = std::fs::read_dir("/usr/lib").ok()?;
    libraries
        .flatten()
        .map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"))
        .find(|library| Path::exists(library))
}
