//! The deploy lab fixture: a lab with a running coordinator, packages, and a workstation user with a separate home directory.
//! [`crate::sshd`] provides the boards.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::{
    Broker, Lab, agent, regatta,
    sshd::{SAILOR, Sshd},
    succeed_output,
};

/// The name of the deployed device.
pub const BOAT: &str = "boat-1";

/// A TensorRT shim that is packed with every agent. Its content is the agent's version, because nothing loads it.
pub const SHIM: &str = "libregatta_trt-8.5.2.so";
/// The plug-in that [`DeployLab::pack`] packs: its version, as text. A document of the same name is beside it.
pub const PLUGIN: &str = "libregatta_loadgen-0000000000.so";

/// A lab, packages, and a user's home directory.
pub struct DeployLab {
    pub lab: Lab,
    directory: tempfile::TempDir,
}

impl Default for DeployLab {
    fn default() -> Self {
        Self::at("127.0.0.1")
    }
}

impl DeployLab {
    /// Creates a lab whose coordinator has the address `host` in its configuration, and listens on 127.0.0.1 only.
    ///
    /// # Panics
    /// Panics when the lab does not start.
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

    /// Returns the directory for files of a test.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the user's home directory.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// Returns the directory of the packages.
    #[must_use]
    pub fn dist(&self) -> PathBuf {
        self.path().join("dist")
    }

    /// Packs a program as this machine's agent, in both package formats, with the [`SHIM`] and the [`PLUGIN`] of the same version.
    ///
    /// # Panics
    /// Panics when the packages cannot be made.
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
        let plugins = self.path().join("plugins");
        fs::create_dir_all(&plugins).expect("a directory");
        fs::write(plugins.join(PLUGIN), version).expect("a plug-in");
        fs::write(plugins.join(PLUGIN).with_extension("json"), "{}").expect("its document");
        command.arg("--plugins").arg(plugins);
        let _ = succeed_output(command.arg("--out").arg(self.dist()));
    }

    /// Packs the real agent on the first call. Later calls restore the same packages.
    ///
    /// # Panics
    /// Panics when the packages cannot be made.
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

    /// Packs the real agent with other bytes, so that its SHA-256 differs.
    ///
    /// # Panics
    /// Panics when the packages cannot be made.
    pub fn pack_other_agent(&self, version: &str) {
        let other = self.path().join("other-agent");
        let mut program = fs::read(self.path().join("regatta-agent")).expect("the agent that was packed");
        // Linux loads what the headers name, and nothing behind it.
        program.extend_from_slice(version.as_bytes());
        fs::write(&other, program).expect("a program");
        let _ = succeed_output(Command::new("chmod").arg("+x").arg(&other));
        self.pack(&other, version);
    }

    /// Packs a script instead of the agent, for tests that end before the agent would start.
    ///
    /// # Panics
    /// Panics when the packages cannot be made.
    pub fn pack_script(&self, script: &str, version: &str) {
        let program = self.path().join("script");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("a program");
        let _ = succeed_output(Command::new("chmod").arg("+x").arg(&program));
        self.pack(&program, version);
    }

    /// Runs `regatta device deploy boat-1 sailor@127.0.0.1:PORT` with the key and the host key, and more arguments.
    ///
    /// # Panics
    /// Panics when the command cannot be started.
    #[must_use]
    pub fn deploy(&self, sshd: &Sshd, more: &[&str]) -> Output {
        let mut command = self.bare(BOAT, sshd);
        command.arg("--identity").arg(sshd.key());
        command
            .args(["--accept-host-key", &sshd.fingerprint()])
            .args(more);
        command.output().expect("regatta starts")
    }

    /// Returns the same command without the key and the host key.
    #[must_use]
    pub fn bare(&self, name: &str, sshd: &Sshd) -> Command {
        let mut command = self.command();
        command.arg(name).arg(format!("{SAILOR}@127.0.0.1:{}", sshd.port));
        command
    }

    /// Upgrades boards by their stored logins and the board's key.
    ///
    /// # Panics
    /// Panics when the command cannot be started.
    #[must_use]
    pub fn upgrade(&self, sshd: &Sshd, more: &[&str]) -> Output {
        self.upgrade_command(sshd, more).output().expect("regatta starts")
    }

    /// Returns the same command before it starts.
    #[must_use]
    pub fn upgrade_command(&self, sshd: &Sshd, more: &[&str]) -> Command {
        let mut command = self.device_command("upgrade");
        command.arg("--identity").arg(sshd.key()).args(more);
        command
    }

    /// Returns `regatta device deploy` with this lab's packages, for a user without an ssh-agent and a terminal.
    #[must_use]
    pub fn command(&self) -> Command {
        self.device_command("deploy")
    }

    fn device_command(&self, name: &str) -> Command {
        let mut command = self.of_user(self.lab.regatta());
        command.args(["device", name]).arg("--package").arg(self.dist());
        command
    }

    /// Returns the command `regatta device deploy boat-1` for a board with its login, without `--package`, started in `directory`. The program is
    /// outside its sources, where it would find their packages.
    ///
    /// # Panics
    /// Panics when the program cannot be copied.
    #[must_use]
    pub fn without_package(&self, sshd: &Sshd, directory: &Path) -> Command {
        let mut command = self.of_user(Command::new(self.program("program")));
        command.arg("--workspace").arg(self.lab.workspace());
        command.current_dir(directory).args(["device", "deploy", BOAT]);
        self.log_in(&mut command, sshd);
        command
    }

    /// Installs the program in a directory of the lab, and returns its path.
    ///
    /// # Panics
    /// Panics when it cannot be copied.
    #[must_use]
    pub fn program(&self, directory: &str) -> PathBuf {
        let directory = self.path().join(directory);
        fs::create_dir_all(&directory).expect("the program's directory");
        let program = directory.join("regatta");
        if !program.exists() {
            fs::hard_link(regatta(), &program)
                .or_else(|_| fs::copy(regatta(), &program).map(drop))
                .expect("the program");
        }
        program
    }

    /// Adds the login on a board, with its key and host key.
    pub fn log_in(&self, command: &mut Command, sshd: &Sshd) {
        command.arg(format!("{SAILOR}@127.0.0.1:{}", sshd.port));
        command.arg("--identity").arg(sshd.key());
        command.args(["--accept-host-key", &sshd.fingerprint()]);
    }

    /// Removes ssh-agent and the terminal from a command, so that it runs like that of a plain user.
    #[must_use]
    pub fn of_user(&self, mut command: Command) -> Command {
        command
            .env("HOME", self.home())
            .env_remove("SSH_AUTH_SOCK")
            .stdin(Stdio::null());
        command
    }
}

/// Returns Debian's name of this machine's architecture.
#[must_use]
pub const fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "amd64"
    }
}
