//! What the system says about a process of this machine (`/proc/PID`): when it was started, its program, arguments and working directory.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_fsutil::hash::sha256_of_file;

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
}

/// Returns the path of the executable. Of a script, it is the interpreter.
pub(super) fn program(pid: u32) -> Option<PathBuf> {
    fs::read_link(directory(pid).join("exe")).ok()
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
        assert_eq!(program(own.pid), env::current_exe().ok());
        assert_eq!(command(own.pid), env::args().collect::<Vec<_>>());
        assert_eq!(working_directory(own.pid), env::current_dir().ok());
        let mut ended = process::Command::new("true").spawn().unwrap();
        while ProcessId::running(ended.id()).is_some() {
            std::thread::yield_now();
        }
        ended.wait().unwrap();
    }
}
