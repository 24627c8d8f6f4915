//! The reference: `scp` of the same file to the same file system through a real sshd, and `sync` of the copy. Keys and
//! configuration are the bench's own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use regatta_tests::{Process, eventually, free_port, succeed_output};

use crate::{AnyError, memory::Reserve, place::Place};

/// A running sshd and the key that it takes.
pub(crate) struct Sshd<'a> {
    directory: PathBuf,
    port: u16,
    place: &'a Place,
    _daemon: Process,
}

impl<'a> Sshd<'a> {
    /// Starts one with its files in `directory`.
    pub(crate) fn start(directory: &Path, place: &'a Place) -> Result<Self, AnyError> {
        let directory = directory.join("ssh");
        fs::create_dir_all(&directory)?;
        for key in ["host", "user"] {
            let path = directory.join(key);
            if !path.exists() {
                let mut keygen = Command::new("ssh-keygen");
                keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&path);
                let _ = succeed_output(&mut keygen);
            }
        }
        fs::copy(directory.join("user.pub"), directory.join("authorized_keys"))?;
        let port = free_port();
        let at = directory.display();
        let config = format!(
            "Port {port}\nListenAddress {}\nHostKey {at}/host\nAuthorizedKeysFile {at}/authorized_keys\n\
             PidFile {at}/pid\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n\
             Subsystem sftp internal-sftp\n",
            place.coordinator_address()
        );
        fs::write(directory.join("sshd_config"), config)?;
        // The empty directory that sshd needs for privilege separation.
        fs::create_dir_all("/run/sshd")?;
        let mut command = place.coordinator_side(Path::new("/usr/sbin/sshd"));
        command
            .args(["-D", "-e", "-f"])
            .arg(directory.join("sshd_config"));
        let daemon = Process::start(&mut command, &directory.join("sshd.log"));
        eventually("sshd to listen", 10, || daemon.output().contains("listening on"));
        Ok(Self {
            directory,
            port,
            place,
            _daemon: daemon,
        })
    }

    /// Copies `file` and returns the seconds until it was on the disk.
    pub(crate) fn copy(&self, file: &Path) -> Result<f64, AnyError> {
        let copy = self.directory.join("copy");
        let _ = fs::remove_file(&copy);
        let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
        let to = format!("{user}@{}:{}", self.place.coordinator_address(), copy.display());
        let mut scp = self.place.device_side(Path::new("/usr/bin/scp"));
        scp.args([
            "-q",
            "-B",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
        ]);
        scp.args(["-o", "LogLevel=ERROR", "-P", &self.port.to_string(), "-i"]);
        scp.arg(self.directory.join("user")).arg(file).arg(to);
        let _reserve = Reserve::for_copy(copy.clone(), fs::metadata(file)?.len(), &self.directory)?;
        let begin = Instant::now();
        let _ = succeed_output(&mut scp);
        let _ = succeed_output(Command::new("sync").arg(&copy));
        let took = begin.elapsed().as_secs_f64();
        fs::remove_file(&copy)?;
        Ok(took)
    }
}
