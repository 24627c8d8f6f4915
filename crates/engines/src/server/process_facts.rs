//! What the system says about a process of this machine (`/proc/PID`): when it was started, its program, arguments and working directory.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use regatta_fsutil::hash::sha256_of_file;

/// The clock ticks of a second in `/proc`, on x86-64 and arm64 alike.
const TICKS_PER_SECOND: u64 = 100;

/// A process, by its number and its start. The number alone may be given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessId {
    pub(super) pid: u32,
    /// Clock ticks since the board's start.
    pub(super) start_ticks: u64,
}

impl ProcessId {
    /// Returns the running process with this number. A process that has ended and is not waited for is `None`.
    pub(super) fn running(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(directory(pid).join("stat")).ok()?;
        // The second field is its name in brackets, which may contain anything. State and start are the third and the 22nd.
        let (_, fields) = text.rsplit_once(')')?;
        let mut fields = fields.split_whitespace();
        let has_ended = matches!(fields.next()?, "Z" | "X");
        let start_ticks = fields.nth(18)?.parse().ok()?;
        (!has_ended).then_some(Self { pid, start_ticks })
    }

    /// Returns the time at which it was started, by the system's clock.
    pub(super) fn started_at(self) -> Option<SystemTime> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let boot = text.lines().find_map(|line| line.strip_prefix("btime "))?;
        let boot = Duration::from_secs(boot.trim().parse().ok()?);
        let since_boot = Duration::from_secs(self.start_ticks / TICKS_PER_SECOND);
        UNIX_EPOCH.checked_add(boot + since_boot)
    }
}

/// Returns the path of the executable. Of a script, it is the interpreter.
pub(super) fn program(pid: u32) -> Option<PathBuf> {
    let path = fs::read_link(directory(pid).join("exe")).ok()?;
    // The system adds this to the path of a file that was removed or replaced.
    let removed = path.to_str().and_then(|path| path.strip_suffix(" (deleted)"));
    Some(removed.map_or_else(|| path.clone(), PathBuf::from))
}

/// Returns the path at which this process finds a file of another one, which may be in a container. `None` if the system does not show it.
pub(super) fn file_of(pid: u32, path: &Path) -> Option<PathBuf> {
    let root = directory(pid).join("root");
    fs::read_link(&root).ok()?;
    Some(root.join(path.strip_prefix("/").ok()?))
}

/// Returns the SHA-256 of the executable as it was started, hexadecimal, also after its file was replaced.
pub(super) fn program_sha256(pid: u32) -> Option<String> {
    sha256_of_file(&directory(pid).join("exe"))
        .ok()
        .map(|hash| hash.hex())
}

/// Returns program and arguments.
pub(super) fn command(pid: u32) -> Vec<String> {
    let bytes = fs::read(directory(pid).join("cmdline")).unwrap_or_default();
    let mut words: Vec<String> = bytes
        .split(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    // Each word ends with the separator.
    words.pop();
    words
}

pub(super) fn working_directory(pid: u32) -> Option<PathBuf> {
    fs::read_link(directory(pid).join("cwd")).ok()
}

fn directory(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

#[cfg(test)]
mod tests {
    use std::{env, process};

    use super::*;

    #[test]
    fn this_process_is_described() {
        let own = ProcessId::running(process::id()).unwrap();
        assert!(own.start_ticks > 0);
        let age = own.started_at().unwrap().elapsed().unwrap();
        assert!(age < Duration::from_secs(3600), "{age:?}");
        let file = file_of(own.pid, &env::current_exe().unwrap()).unwrap();
        assert_eq!(fs::canonicalize(file).unwrap(), env::current_exe().unwrap());
        assert_eq!(program(own.pid), env::current_exe().ok());
        assert_eq!(command(own.pid), env::args().collect::<Vec<_>>());
        assert_eq!(working_directory(own.pid), env::current_dir().ok());
        let place = tempfile::tempdir().unwrap();
        let copy = place.path().join("sleep");
        fs::copy("/bin/sleep", &copy).unwrap();
        let mut removed = process::Command::new(&copy).arg("60").spawn().unwrap();
        while program(removed.id()).as_ref() != Some(&copy) {
            std::thread::yield_now();
        }
        fs::remove_file(&copy).unwrap();
        assert_eq!(program(removed.id()), Some(copy));
        removed.kill().unwrap();
        removed.wait().unwrap();
        let mut ended = process::Command::new("true").spawn().unwrap();
        while ProcessId::running(ended.id()).is_some() {
            std::thread::yield_now();
        }
        ended.wait().unwrap();
    }
}
