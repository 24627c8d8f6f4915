//! The agent of a quickstart: found or built, enrolled, started as a separate process, and ended with the quickstart.

use std::{
    ffi::OsStr,
    fs::File,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use jiff::SignedDuration;
use rustix::process::{Pid, Signal, kill_process};

use super::quickstart_directory::{DEVICE, QuickstartDirectory};
use crate::exit::Failure;
use regatta_lab_net::{
    enrollment::{self, TokenRequest},
    keys::Keys,
};
use regatta_lab_store::{Store, workspace::Workspace};

const BINARY: &str = "regatta-agent";
/// The time that the agent may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// The token's lifetime. It is used at once, and after an interruption an unused one expires soon.
const TOKEN_LIFETIME: SignedDuration = SignedDuration::from_secs(20);

/// Returns the agent's binary, which is beside this program. In a source tree it is built if missing. Under `cargo run` it is always
/// built, because cargo has built only this program.
pub(in crate::cli) fn find_or_build(tell: impl Fn(&str)) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().context("cannot determine the path of this executable")?;
    let beside = own.with_file_name(BINARY);
    let under_cargo = std::env::var_os("CARGO").is_some();
    if beside.exists() && !under_cargo {
        return Ok(beside);
    }
    let Some(tree) = source_tree(&own) else {
        if beside.exists() {
            return Ok(beside);
        }
        return Err(
            Failure::could_not(format!("{BINARY} is not beside {}", own.display()))
                .hint("install both binaries into one directory"),
        );
    };
    tell(&format!("building {BINARY}"));
    let profile = cargo_profile(&own);
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build
        .current_dir(&tree)
        .args(["build", "--package", BINARY, "--bin", BINARY])
        .arg("--profile")
        .arg(profile);
    // With cargo's variables for this package, build scripts of the agent would run again.
    for (name, _) in std::env::vars_os() {
        let ours = [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_CRATE_NAME",
            "CARGO_BIN_NAME",
            "CARGO_PRIMARY_PACKAGE",
        ];
        if name
            .to_str()
            .is_some_and(|name| ours.iter().any(|prefix| name.starts_with(prefix)))
        {
            build.env_remove(&name);
        }
    }
    let status = build.status().context("cannot start cargo to build the agent")?;
    if !status.success() {
        return Err(Failure::could_not(format!(
            "cargo could not build {BINARY} ({status})"
        )));
    }
    if !beside.exists() {
        return Err(Failure::could_not(format!(
            "cargo built {BINARY} elsewhere than beside {}",
            own.display()
        ))
        .hint(format!(
            "build the complete workspace: cargo build --profile {}",
            profile.display()
        )));
    }
    Ok(beside)
}

/// Returns cargo's profile of a program, which is the name of its directory. `debug` is the directory of the profile `dev`.
fn cargo_profile(program: &Path) -> &OsStr {
    match program.parent().and_then(Path::file_name) {
        Some(directory) if directory != "debug" => directory,
        _ => OsStr::new("dev"),
    }
}

/// Returns the source tree of this program: above the program, or above the working directory.
fn source_tree(own: &Path) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    own.ancestors()
        .chain(here.ancestors())
        .find(|dir| dir.join("Cargo.toml").exists() && dir.join("agent/Cargo.toml").exists())
        .map(Path::to_owned)
}

/// Enrolls the quickstart's device, unless an earlier quickstart has.
pub(super) fn enroll(
    binary: &Path,
    place: &QuickstartDirectory,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    let member = store
        .members()
        .all()?
        .into_iter()
        .find(|member| member.name == DEVICE && member.removed.is_none());
    if let Some(member) = member {
        if place.enrollment().exists() {
            return Ok(());
        }
        // The device's directory was deleted, so that device cannot return.
        store
            .members()
            .remove(&member.device, &member.name, &member.public_key)?;
    }
    let config = workspace.config();
    let authority = Keys::load(&workspace.keys())?.authority().fingerprint();
    let requested = TokenRequest {
        name: DEVICE,
        place: (config.host.clone(), config.enroll_listen.port()),
        authority,
        lifetime: TOKEN_LIFETIME,
        returning: None,
    };
    let made = enrollment::issue(store, &requested)?;
    let enrolled = Command::new(binary)
        .arg("enroll")
        .arg("--config")
        .arg(std::path::absolute(place.agent_config())?)
        .arg(made.token.to_string())
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", binary.display()))?;
    if !enrolled.status.success() {
        let printed = String::from_utf8_lossy(&enrolled.stderr).trim().to_owned();
        return Err(Failure::could_not(format!(
            "the device could not be enrolled: {printed}"
        )));
    }
    Ok(())
}

/// A running agent. Dropping it ends the agent.
pub(super) struct Agent {
    child: Child,
    log: PathBuf,
}

impl Agent {
    /// Starts the agent in the device's directory.
    pub(super) fn start(binary: &Path, place: &QuickstartDirectory) -> Result<Self, Failure> {
        let log = place.agent_log();
        let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let child = Command::new(binary)
            .arg("serve")
            .arg("--config")
            .arg(std::path::absolute(place.agent_config())?)
            .current_dir(place.device())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            // Ctrl-C at the terminal reaches only this program, which ends the agent once the coordinator is ready.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        Ok(Self { child, log })
    }

    /// Checks that the agent is running.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(Failure::could_not(format!("the agent has ended ({status})"))
                .hint(format!("its log is {}", self.log.display()))),
        }
    }

    /// Terminates the agent, and kills it if it does not end.
    fn end(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
    }
}
