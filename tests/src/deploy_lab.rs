//! A yard from which boards are deployed to: a lab whose coordinator runs, packages, and a user at the workstation with a home of
//! his own. The boards are [`crate::sshd`]'s.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::{
    Broker, Lab, agent,
    sshd::{SAILOR, Sshd},
    succeed_output,
};

/// The device that is deployed.
pub const BOAT: &str = "boat-1";

/// A shim of TensorRT that is packed with every agent. Its bytes are the agent's version: nobody opens it.
pub const SHIM: &str = "libregatta_trt-8.5.2.so";

/// A lab, packages, and a user's home.
pub struct DeployLab {
    /// Its lab.
    pub lab: Lab,
    directory: tempfile::TempDir,
}

impl Default for DeployLab {
    fn default() -> Self {
        Self::at("127.0.0.1")
    }
}

impl DeployLab {
    /// A yard whose coordinator calls itself `host`, and is to be had at 127.0.0.1 alone.
    ///
    /// # Panics
    /// When it does not come up.
    #[must_use]
    pub fn at(host: &str) -> Self {
        let mut lab = Lab::secure(Broker::Embedded).expect("a lab");
        let config = lab.workspace().join("regatta.toml");
        let own = "host = \"127.0.0.1\"\n";
        let text = fs::read_to_string(&config).expect("the workspace's configuration");
        assert!(text.contains(own), "{text}");
        fs::write(&config, text.replace(own, &format!("host = \"{host}\"\n"))).expect("its configuration");
        lab.start_coordinator();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let deploy_lab = Self { lab, directory };
        fs::create_dir(deploy_lab.home()).expect("a home");
        deploy_lab
    }

    /// A place for what a test makes.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The user's home.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// Where the packages lie.
    #[must_use]
    pub fn dist(&self) -> PathBuf {
        self.path().join("dist")
    }

    /// Packs a program as the agent of this machine, in both ways, with the [`SHIM`] of the same version.
    ///
    /// # Panics
    /// When the disk refuses.
    pub fn pack(&self, program: &Path, version: &str) {
        let _ = fs::remove_dir_all(self.dist());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/package.sh");
        let mut command = Command::new(script);
        let words = ["--arch", architecture(), "--version", version, "--level", "1"];
        command.args(words).arg("--binary").arg(program);
        let shims = self.path().join("shims");
        fs::create_dir_all(&shims).expect("a directory");
        fs::write(shims.join(SHIM), version).expect("a shim");
        command.arg("--shims").arg(shims);
        let _ = succeed_output(command.arg("--out").arg(self.dist()));
    }

    /// Packs the real agent, the first time; afterwards what was packed is there again.
    ///
    /// # Panics
    /// When the disk refuses.
    pub fn pack_agent(&self) {
        let kept = self.path().join("kept");
        if !kept.exists() {
            let stripped = self.path().join("regatta-agent");
            let _ = succeed_output(Command::new("strip").arg("-o").arg(&stripped).arg(agent()));
            self.pack(&stripped, "0.1.0");
            fs::rename(self.dist(), &kept).expect("the packages are kept");
        }
        let _ = fs::remove_dir_all(self.dist());
        let _ = succeed_output(Command::new("cp").arg("-r").arg(kept).arg(self.dist()));
    }

    /// Packs a script in place of the agent: enough for whatever ends before it would start.
    ///
    /// # Panics
    /// When the disk refuses.
    pub fn pack_script(&self, script: &str, version: &str) {
        let program = self.path().join("script");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("a program");
        let _ = succeed_output(Command::new("chmod").arg("+x").arg(&program));
        self.pack(&program, version);
    }

    /// `regatta device deploy boat-1 sailor@127.0.0.1:PORT`, letting in by key and knowing the host, with more words.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn deploy(&self, sshd: &Sshd, more: &[&str]) -> Output {
        let mut command = self.bare(BOAT, sshd);
        command.arg("--identity").arg(sshd.key());
        command
            .args(["--accept-host-key", &sshd.fingerprint()])
            .args(more);
        command.output().expect("regatta starts")
    }

    /// The same without key and host.
    #[must_use]
    pub fn bare(&self, name: &str, sshd: &Sshd) -> Command {
        let mut command = self.command();
        command.arg(name).arg(format!("{SAILOR}@127.0.0.1:{}", sshd.port));
        command
    }

    /// `regatta device deploy` with this yard's packages, as its user, who has no ssh-agent and no terminal.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = self.lab.regatta();
        command.args(["device", "deploy"]);
        command
            .arg("--package")
            .arg(self.dist())
            .env("HOME", self.home())
            .env_remove("SSH_AUTH_SOCK")
            .stdin(Stdio::null());
        command
    }
}

const fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "amd64"
    }
}
