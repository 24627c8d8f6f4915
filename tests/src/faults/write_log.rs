//! What was written on a lab's disks, as the kernel reports it: an account of the files of runs and sessions that no part of Regatta makes.
//! Checkers compare what arrived with it. It also tells when a given file was closed, so that a kill can hit that moment.
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

use super::processes::command_line;

/// The longest time that the account may lag behind the disk.
const CATCH_UP: Duration = Duration::from_secs(10);

/// The SHA-256 (hexadecimal) and the length of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub sha256: String,
    pub bytes: u64,
}

impl Content {
    pub fn of(bytes: &[u8]) -> Self {
        let sha256 = Sha256::digest(bytes);
        Self {
            sha256: sha256.iter().map(|byte| format!("{byte:02x}")).collect(),
            bytes: bytes.len() as u64,
        }
    }
}

/// The writes to one file.
#[derive(Debug, Clone, Default)]
pub struct FileWrites {
    /// The content at the last close of the file under its own name.
    pub last: Option<Content>,
    /// Contents of temporary files that were to replace it. A kill decides which of them does, if any.
    pub replacements: Vec<Content>,
}

impl FileWrites {
    /// Returns whether the file must exist.
    pub const fn is_required(&self) -> bool {
        self.last.is_some()
    }

    /// Returns whether the file may have this content.
    pub fn allow(&self, content: &Content) -> bool {
        self.last.as_ref() == Some(content) || self.replacements.contains(content)
    }
}

/// The written files of one run or session by name.
pub type Writes = BTreeMap<String, FileWrites>;

#[derive(Debug, Default)]
struct Account {
    owners: BTreeMap<String, Writes>,
    /// Writes of processes to files that are not theirs.
    meddling: Vec<String>,
    /// Why the account has a gap.
    gaps: Vec<String>,
    /// Receives the path of each closed file while somebody waits for one.
    listeners: Vec<mpsc::Sender<PathBuf>>,
}

/// The account of one lab.
pub struct WriteLog {
    account: Arc<Mutex<Account>>,
    disk: PathBuf,
}

/// The meaning of a file that was closed after writing.
#[derive(Debug, PartialEq, Eq)]
pub enum ClosedFile {
    /// A file that the account does not have.
    Other,
    /// A file of a run or session.
    Written(WrittenFile),
    /// A file that this process must not write.
    Meddling(String),
}

/// A file of a run or session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// The run or session.
    pub owner: String,
    /// Its name there.
    pub name: String,
    /// Whether it is a temporary file that may replace the one of this name.
    pub is_replacement: bool,
}

/// Files that the agent writes beside those of the run process, or may cut off when the disk is nearly full.
const AGENT_FILES: [&str; 4] = ["evidence.json", "evidence.sig", "run.log", "telemetry.csv"];

/// Files that are replaced as a whole. Any other file that is removed is a loss.
const REPLACED_FILES: [&str; 3] = ["attempt.json", "evidence.json", "evidence.sig"];

impl WriteLog {
    /// Begins the account of these file systems, which `disks` names by their mount points. `recognise` gets the path of a closed file and
    /// the command line of the process that wrote it, which is empty when it has ended.
    ///
    /// # Errors
    /// Returns an error when the kernel refuses, which it does without root.
    pub fn begin(
        disks: &[&Path],
        recognise: impl Fn(&Path, &str) -> ClosedFile + Send + 'static,
    ) -> anyhow::Result<Self> {
        let events = watch(disks).context("fanotify")?;
        let account = Arc::new(Mutex::new(Account::default()));
        let log = Self {
            account: Arc::clone(&account),
            disk: disks.first().context("a disk")?.to_path_buf(),
        };
        thread::spawn(move || {
            let ended = follow(events, &recognise, &account);
            lock(&account).gaps.extend(ended.err().map(|e| e.to_string()));
        });
        Ok(log)
    }

    /// Returns the writes to the files of a run or session.
    #[must_use]
    pub fn of(&self, owner: &str) -> Writes {
        lock(&self.account).owners.get(owner).cloned().unwrap_or_default()
    }

    /// Returns the runs and sessions with a file.
    #[must_use]
    pub fn owners(&self) -> Vec<String> {
        lock(&self.account).owners.keys().cloned().collect()
    }

    /// Returns what makes the account unreliable or shows that a process changed files that are not its own.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        let account = lock(&self.account);
        let gaps = account.gaps.iter();
        gaps.map(|gap| format!("the account of writes has a gap: {gap}"))
            .chain(account.meddling.iter().cloned())
            .collect()
    }

    /// Returns the paths of files as they are closed from now on.
    pub fn closed_files(&self) -> mpsc::Receiver<PathBuf> {
        let (sender, receiver) = mpsc::channel();
        lock(&self.account).listeners.push(sender);
        receiver
    }

    /// Waits until every write before this call is in the account.
    ///
    /// # Errors
    /// Returns an error when the account does not catch up.
    pub fn catch_up(&self) -> anyhow::Result<()> {
        let closed = self.closed_files();
        let marker = self.disk.join("write-log-marker");
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
fn follow(
    mut events: File,
    recognise: &dyn Fn(&Path, &str) -> ClosedFile,
    account: &Mutex<Account>,
) -> io::Result<()> {
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
            let closed = recognise(&path, &command_line(event.process));
            note(account, &path, closed, file);
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

fn note(account: &Mutex<Account>, path: &Path, closed: ClosedFile, mut file: File) {
    match closed {
        ClosedFile::Other => {}
        ClosedFile::Meddling(what) => lock(account).meddling.push(what),
        ClosedFile::Written(written) => {
            let mut bytes = Vec::new();
            let read = file.read_to_end(&mut bytes);
            let mut account = lock(account);
            if let Err(error) = read {
                account.gaps.push(format!("{}: {error}", path.display()));
            } else {
                let writes = account.owners.entry(written.owner).or_default();
                let writes = writes.entry(written.name).or_default();
                match written.is_replacement {
                    true => writes.replacements.push(Content::of(&bytes)),
                    false => writes.last = Some(Content::of(&bytes)),
                }
            }
        }
    }
    let mut account = lock(account);
    account
        .listeners
        .retain(|listener| listener.send(path.to_owned()).is_ok());
}

/// Recognises a file of a run below `runs`, the directory of the device's runs. The agent must not write to files of the run process.
#[must_use]
pub fn file_of_run(runs: &Path, path: &Path, command_line: &str) -> ClosedFile {
    match written_file_of_run(runs, path) {
        None => ClosedFile::Other,
        Some(file) if is_agent(command_line) && !AGENT_FILES.contains(&file.name.as_str()) => {
            let WrittenFile { owner, name, .. } = file;
            ClosedFile::Meddling(format!(
                "run {owner}: the agent wrote to {name}, which is the run process's"
            ))
        }
        Some(file) => ClosedFile::Written(file),
    }
}

fn written_file_of_run(runs: &Path, path: &Path) -> Option<WrittenFile> {
    let below = path.strip_prefix(runs).ok()?;
    let parts: Vec<&str> = below.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
    let (run, file) = match *parts.as_slice() {
        [run, file] if file.starts_with("attempt.json.part") => (run, file),
        [run, "files", file] => (run, file),
        _ => return None,
    };
    let (present, is_gone) = present_name(file);
    let hidden = present
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(".new"));
    let (name, is_temporary) = match hidden.or_else(|| present.strip_suffix(".part")) {
        Some(name) => (name, true),
        None => (present, false),
    };
    (!run.starts_with('.')).then(|| WrittenFile {
        owner: run.to_owned(),
        name: name.to_owned(),
        is_replacement: is_temporary || (is_gone && REPLACED_FILES.contains(&name)),
    })
}

/// Returns the name without the kernel's mark of a file that was removed, or replaced by another, before its report was read; and whether it
/// has the mark.
#[must_use]
pub fn present_name(file: &str) -> (&str, bool) {
    match file.strip_suffix(" (deleted)") {
        Some(file) => (file, true),
        None => (file, false),
    }
}

fn is_agent(command_line: &str) -> bool {
    let mut words = command_line.split(' ');
    words
        .next()
        .is_some_and(|program| program.ends_with("regatta-agent"))
        && words.next() == Some("serve")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_runs_are_recognised_by_their_paths() {
        let runs = Path::new("/device/state/runs");
        let of = |path: &str| written_file_of_run(runs, &runs.join(path));
        let file = |name: &str, is_replacement| {
            Some(WrittenFile {
                owner: "r1".to_owned(),
                name: name.to_owned(),
                is_replacement,
            })
        };
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
        let elsewhere = Path::new("/elsewhere/r1/files/run.log");
        assert_eq!(written_file_of_run(runs, elsewhere), None);
    }

    #[test]
    fn agent_that_writes_to_a_log_of_loadgen_is_noticed() {
        let runs = Path::new("/device/state/runs");
        let log = runs.join("r1/files/mlperf_log_detail.txt");
        let of = |path: &Path, line: &str| file_of_run(runs, path, line);
        let agent = "target/debug/regatta-agent serve --config agent.toml";
        assert!(matches!(of(&log, agent), ClosedFile::Meddling(_)));
        assert!(matches!(of(&log, "regatta-agent exec"), ClosedFile::Written(_)));
        let evidence = runs.join("r1/files/evidence.json");
        assert!(matches!(of(&evidence, agent), ClosedFile::Written(_)));
    }
}
