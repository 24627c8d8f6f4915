//! Runs Debian's tools for fault campaigns, and reports their output when they fail.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, bail, ensure};

/// Finds a tool. Daemons and network tools are in directories that a user's PATH may lack.
#[must_use]
pub fn find(tool: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(Into::into);
    std::env::split_paths(&path)
        .chain(usual)
        .map(|directory| directory.join(tool))
        .find(|candidate| candidate.is_file())
}

/// Returns a command for a tool.
///
/// # Errors
/// Returns an error when the tool is not installed.
pub fn command(tool: &str) -> anyhow::Result<Command> {
    let path = find(tool).with_context(|| format!("{tool} is not installed"))?;
    Ok(Command::new(path))
}

/// Runs a tool with the words of one line.
///
/// # Errors
/// Returns an error with the tool's output when it is missing or fails.
pub fn run(line: &str) -> anyhow::Result<()> {
    let mut words = line.split_ascii_whitespace();
    let tool = words.next().unwrap_or_default();
    succeed(command(tool)?.args(words)).map(drop)
}

/// Loads rules into the kernel's packet filter.
///
/// # Errors
/// Returns an error when nft is missing or refuses them.
pub fn load_packet_rules(rules: &str) -> anyhow::Result<()> {
    let mut nft = command("nft")?.args(["-f", "-"]).stdin(Stdio::piped()).spawn()?;
    nft.stdin
        .take()
        .context("nft has an input")?
        .write_all(rules.as_bytes())?;
    ensure!(nft.wait()?.success(), "nft refuses {rules}");
    Ok(())
}

/// Runs a command and returns its output.
///
/// # Errors
/// Returns an error with the command's output when it fails.
pub fn succeed(command: &mut Command) -> anyhow::Result<Output> {
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

/// Returns the path of Debian's libfaketime for programs with threads.
#[must_use]
pub fn libfaketime() -> Option<std::path::PathBuf> {
    let libraries = std::fs::read_dir("/usr/lib").ok()?;
    libraries
        .flatten()
        .map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"))
        .find(|library| Path::exists(library))
}
