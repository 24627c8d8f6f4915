//! What was written on the device's disk, as the kernel reports it: an account of every run's files that no part of Regatta makes. The
//! checker compares what arrived with it. It also tells when a given file was closed, so that a kill can hit that moment.
//!
//! A file's content is read when its writer closes it, which the kernel does for a killed process too.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};

/// The longest time that the account may lag behind the disk.
const CATCH_UP: Duration = Duration::from_secs(10);

/// The SHA-256 (hexadecimal) and the length of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) sha256: String,
    pub(crate) bytes: u64,
}

impl Content {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let sha256 = Sha256::digest(bytes);
        Self {
            sha256: sha256.iter().map(|byte| format!("{byte:02x}")).collect(),
            bytes: bytes.len() as u64,
        }
    }
}

/// The writes to one file of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileWrites {
    /// The content at the last close of the file under its own name.
    pub(crate) last: Option<Content>,
    /// Contents of temporary files that were to replace it. A kill decides which of them does, if any.
    pub(crate) replacements: Vec<Content>,
}

impl FileWrites {
    /// Returns whether the file must exist.
    pub(crate) const fn is_required(&self) -> bool {
        self.last.is_some()
    }

    /// Returns whether the file may have this content.
    pub(crate) fn allow(&self, content: &Content) -> bool {
        self.last.as_ref() == Some(content) || self.replacements.contains(content)
    }
}

/// The files of one run by name.
pub(crate) type RunWrites = BTreeMap<String, FileWrites>;

#[derive(Debug, Default)]
struct Account {
    runs: BTreeMap<String, RunWrites>,
    /// Writes of the agent to files of the run process, which it must only read.
    meddling: Vec<String>,
    /// Why the account has a gap.
    gaps: Vec<String>,
    /// Receives the path of each closed file while somebody waits for one.
    listeners: Vec<mpsc::Sender<PathBuf>>,
}

/// The account of one lab.
pub(crate) struct WriteLog {
    account: Arc<Mutex<Account>>,
    runs: PathBuf,
}

/// Files that the agent writes beside those of the run process, or may cut off when the disk is nearly full.
const AGENT_FILES: [&str; 4] = ["evidence.json", "evidence.sig", "run.log", "telemetry.csv"];

/// Files that are replaced as a whole. Any other file that is removed is a loss.
const REPLACED_FILES: [&str; 3] = ["attempt.json", "evidence.json", "evidence.sig"];

impl WriteLog {
    /// Begins the account of the runs below `runs`. `disks` are the mount points of the file systems to watch.
    ///
    /// # Errors
    /// Returns an error when the kernel refuses, which it does without root.
    pub(crate) fn begin(runs: &Path, disks: &[&Path]) -> anyhow::Result<Self> {
        let events = watch(disks).context("fanotify")?;
        let account = Arc::new(Mutex::new(Account::default()));
        let log = Self {
            account: Arc::clone(&account),
            runs: runs.to_owned(),
        };
        let runs = runs.to_owned();
        thread::spawn(move || {
            let ended = follow(events, &runs, &account);
            lock(&account).gaps.extend(ended.err().map(|e| e.to_string()));
        });
        Ok(log)
    }

    /// Returns the writes to the files of a run.
    pub(crate) fn of_run(&self, run: &str) -> RunWrites {
        lock(&self.account).runs.get(run).cloned().unwrap_or_default()
    }

    /// Returns the runs with a file.
    pub(crate) fn runs(&self) -> Vec<String> {
        lock(&self.account).runs.keys().cloned().collect()
    }

    /// Returns what makes the account unreliable or shows that the agent changed files that are not its own.
    pub(crate) fn violations(&self) -> Vec<String> {
        let account = lock(&self.account);
        let gaps = account.gaps.iter();
        gaps.map(|gap| format!("the account of writes has a gap: {gap}"))
            .chain(account.meddling.iter().cloned())
            .collect()
    }

    /// Returns the paths of files as they are closed from now on.
    pub(crate) fn closed_files(&self) -> mpsc::Receiver<PathBuf> {
        let (sender, receiver) = mpsc::channel();
        lock(&self.account).listeners.push(sender);
        receiver
    }

    /// Waits until every write before this call is in the account.
    ///
    /// # Errors
    /// Returns an error when the account does not catch up.
    pub(crate) fn catch_up(&self) -> anyhow::Result<()> {
        let closed = self.closed_files();
        let marker = self.runs.with_file_name("write-log-marker");
        fs::write(&marker, "")?;
        let begin = Instant::now();
        while begin.elapsed() < CATCH_UP {
            if closed.recv_timeout(CATCH_UP).is_ok_and(|path| path == marker) {
                return Ok(fs::remove_file(&marker)?);
            }
        }
        anyhow::bail!("the account of writes lags behind by {} s", CATCH_UP.as_secs())
    }
}

fn lock(account: &Mutex<Account>) -> MutexGuard<'_, Account> {
    account.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the kernel's reports of closed files that were open for writing on these file systems.
fn watch(disks: &[&Path]) -> anyhow::Result<File> {
    let flags = libc::FAN_CLOEXEC | libc::FAN_CLASS_NOTIF | libc::FAN_UNLIMITED_QUEUE;
    let open_flags = u32::try_from(libc::O_RDONLY | libc::O_CLOEXEC | libc::O_LARGEFILE)?;
    // SAFETY: the call takes no pointers.
    let descriptor = unsafe { libc::fanotify_init(flags, open_flags) };
    ensure!(descriptor >= 0, io::Error::last_os_error());
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    let events = unsafe { OwnedFd::from_raw_fd(descriptor) };
    for disk in disks {
        let path = std::ffi::CString::new(disk.as_os_str().as_encoded_bytes())?;
        // SAFETY: the path is a C string that outlives the call, and the descriptor is open.
        let marked = unsafe {
            libc::fanotify_mark(
                events.as_raw_fd(),
                libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM,
                libc::FAN_CLOSE_WRITE,
                libc::AT_FDCWD,
                path.as_ptr(),
            )
        };
        ensure!(marked == 0, io::Error::last_os_error());
    }
    Ok(File::from(events))
}

/// Reads reports for ever.
fn follow(mut events: File, runs: &Path, account: &Mutex<Account>) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = events.read(&mut buffer)?;
        let mut rest = buffer.get(..length).unwrap_or_default();
        while let Some((event, after)) = Event::parse(rest) {
            rest = after;
            let Some(file) = event.file else {
                lock(account).gaps.push("the kernel dropped reports".to_owned());
                continue;
            };
            let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
            note(account, runs, &path, file, event.process);
        }
    }
}

struct Event {
    /// `None` when the kernel dropped events.
    file: Option<File>,
    process: i32,
}

impl Event {
    /// Takes the first event of the kernel's bytes.
    fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let whole = bytes.get(..size_of::<libc::fanotify_event_metadata>())?;
        // SAFETY: the slice has the structure's length, and all bytes are valid for its integers.
        let event = unsafe {
            whole
                .as_ptr()
                .cast::<libc::fanotify_event_metadata>()
                .read_unaligned()
        };
        let after = bytes.get(usize::try_from(event.event_len).ok()?..)?;
        // SAFETY: the kernel opened this descriptor for this event, and nothing else owns it.
        let file = (event.fd >= 0).then(|| unsafe { File::from_raw_fd(event.fd) });
        let process = event.pid;
        Some((Self { file, process }, after))
    }
}

fn note(account: &Mutex<Account>, runs: &Path, path: &Path, mut file: File, process: i32) {
    if let Some((run, name, is_replacement)) = file_of_run(runs, path) {
        let mut bytes = Vec::new();
        let read = file.read_to_end(&mut bytes);
        let mut account = lock(account);
        if let Err(error) = read {
            account.gaps.push(format!("{}: {error}", path.display()));
        } else if !AGENT_FILES.contains(&name.as_str()) && is_agent(process) {
            account.meddling.push(format!(
                "run {run}: the agent wrote to {name}, which is the run process's"
            ));
        } else {
            let writes = account.runs.entry(run).or_default().entry(name).or_default();
            if is_replacement {
                writes.replacements.push(Content::of(&bytes));
            } else {
                writes.last = Some(Content::of(&bytes));
            }
        }
    }
    let mut account = lock(account);
    account
        .listeners
        .retain(|listener| listener.send(path.to_owned()).is_ok());
}

/// Returns run, name, and whether the file is a temporary one that will replace the named one.
fn file_of_run(runs: &Path, path: &Path) -> Option<(String, String, bool)> {
    let below = path.strip_prefix(runs).ok()?;
    let parts: Vec<&str> = below.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
    let (run, file) = match *parts.as_slice() {
        [run, file] if file.starts_with("attempt.json.part") => (run, file),
        [run, "files", file] => (run, file),
        _ => return None,
    };
    // The kernel marks a file that was removed, or replaced by another, before the report was read.
    let (present, is_gone) = match file.strip_suffix(" (deleted)") {
        Some(file) => (file, true),
        None => (file, false),
    };
    let hidden = present
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(".new"));
    let (name, is_temporary) = match hidden.or_else(|| present.strip_suffix(".part")) {
        Some(name) => (name, true),
        None => (present, false),
    };
    let is_replacement = is_temporary || (is_gone && REPLACED_FILES.contains(&name));
    (!run.starts_with('.')).then(|| (run.to_owned(), name.to_owned(), is_replacement))
}

/// Returns whether a process is the agent's daemon. A process that is gone is not recognised.
fn is_agent(process: i32) -> bool {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(b"serve")
        && line
            .split(|byte| *byte == 0)
            .next()
            .is_some_and(|program| program.ends_with(b"regatta-agent"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_runs_are_recognised_by_their_paths() {
        let runs = Path::new("/device/state/runs");
        let of = |path: &str| file_of_run(runs, &runs.join(path));
        let file = |name: &str, is_replacement| Some(("r1".to_owned(), name.to_owned(), is_replacement));
        assert_eq!(of("r1/files/run.log"), file("run.log", false));
        assert_eq!(of("r1/files/.evidence.json.new"), file("evidence.json", true));
        assert_eq!(of("r1/attempt.json.part"), file("attempt.json", true));
        assert_eq!(of("r1/files/attempt.json"), file("attempt.json", false));
        assert_eq!(of("r1/files/attempt.json (deleted)"), file("attempt.json", true));
        assert_eq!(
            of("r1/files/.evidence.sig.new (deleted)"),
            file("evidence.sig", true)
        );
        let log = "mlperf_log_accuracy.json";
        assert_eq!(
            of(&format!("r1/files/{log} (deleted)")),
            file(log, false),
            "a loss"
        );
        assert_eq!(of("r1/job.json"), None);
        assert_eq!(of(".new-r1/files/run.log"), None);
        assert_eq!(file_of_run(runs, Path::new("/elsewhere/r1/files/run.log")), None);
    }
}
