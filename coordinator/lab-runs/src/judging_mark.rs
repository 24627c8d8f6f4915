//! Notes on disk which runs are being judged. If judging a run has ended the process twice, the run is not judged a third time, because every later
//! start would end in the same way. The notes do not depend on the parsers, and cover a crash in any of them.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use regatta_fsutil::regular_file;
use regatta_types::RunId;

/// How often the judging of a run may end the process.
const MAX_ENDS: u32 = 2;
/// The maximum size of a note in bytes.
const MAX_NOTE: u64 = 256;

/// The notes about runs that are being judged: a file per run, whose name is the run's id. Every thread that judges shares them.
#[derive(Debug, Clone)]
pub struct JudgingMarks {
    directory: PathBuf,
    /// A thread locks it exclusively to judge a run that may have ended the process.
    turns: Arc<RwLock<()>>,
    /// The runs that are being judged, and how often each of them has ended the process before.
    current: Arc<Mutex<BTreeMap<RunId, u32>>>,
}

impl JudgingMarks {
    /// Creates the marks in a directory, which is created with the first note.
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            turns: Arc::default(),
            current: Arc::default(),
        }
    }

    /// Calls `work` to judge a run, with a note about it on disk. Returns `None` without calling it if judging the run has ended the process too
    /// often.
    ///
    /// A run that was being judged when the process ended is judged alone. Otherwise, a harmless run that is judged at the same time would be noted
    /// twice, too.
    pub(super) fn judge<T>(&self, run: RunId, work: impl FnOnce() -> T) -> Option<T> {
        let (_alone, _beside) = match self.ends_of(run) {
            0 => (
                None,
                Some(self.turns.read().unwrap_or_else(PoisonError::into_inner)),
            ),
            _ => (
                Some(self.turns.write().unwrap_or_else(PoisonError::into_inner)),
                None,
            ),
        };
        if !self.begin(run) {
            return None;
        }
        let result = work();
        self.end(run);
        Some(result)
    }

    /// Notes that judging a run begins. Returns `false` if it has ended the process too often.
    fn begin(&self, run: RunId) -> bool {
        let ends = self.ends_of(run);
        if ends >= MAX_ENDS {
            return false;
        }
        self.current().insert(run, ends);
        if let Err(error) = self.write(run, ends + 1) {
            tracing::warn!(%run, "cannot note that it is being judged: {error}");
        }
        true
    }

    /// Notes that judging a run has ended, or that the run is not judged any more.
    pub(super) fn end(&self, run: RunId) {
        self.current().remove(&run);
        // A missing note is what is wanted.
        let _ = fs::remove_file(self.path(run));
    }

    /// Restores the notes about the runs that are being judged, because the process ends for another reason.
    pub fn end_all(&self) {
        let current = std::mem::take(&mut *self.current());
        for (run, ends) in current {
            let restored = match ends {
                0 => fs::remove_file(self.path(run)),
                _ => self.write(run, ends),
            };
            if let Err(error) = restored {
                tracing::warn!(%run, "cannot note that its judging does not end the process: {error}");
            }
        }
    }

    /// Removes the notes about runs for which `is_judged` returns `false`, for example removed ones.
    pub(super) fn retain(&self, is_judged: impl Fn(RunId) -> bool) {
        // A missing directory has no notes.
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        for run in names.filter_map(|name| name.parse().ok()) {
            if !is_judged(run) {
                self.end(run);
            }
        }
    }

    fn write(&self, run: RunId, ends: u32) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        // It is not flushed: only the end of the process counts, not a power cut.
        fs::write(self.path(run), format!("{ends}\n"))
    }

    /// Returns the number of times that judging the run has begun without ending.
    fn ends_of(&self, run: RunId) -> u32 {
        let bytes = regular_file::read(&self.path(run), MAX_NOTE).ok();
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        text.and_then(|text| text.trim_end().parse().ok()).unwrap_or(0)
    }

    fn path(&self, run: RunId) -> PathBuf {
        self.directory.join(run.to_string())
    }

    fn current(&self) -> MutexGuard<'_, BTreeMap<RunId, u32>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use super::*;

    #[test]
    fn only_the_run_whose_judging_ended_the_process_twice_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let new = || JudgingMarks::new(&directory.path().join("judging"));
        let (run, other) = (RunId::now(), RunId::now());
        assert!(new().begin(run));
        assert!(new().begin(run), "once may be chance");
        let marks = new();
        assert!(!marks.begin(run));
        assert_eq!(marks.judge(run, || ()), None);
        assert!(marks.begin(other), "it has never ended the process");
        marks.end(other);
        fs::write(marks.path(other), "no note").unwrap();
        assert!(marks.begin(other));
    }

    #[test]
    fn another_run_that_is_judged_first_does_not_hide_the_ends() {
        let directory = tempfile::tempdir().unwrap();
        let new = || JudgingMarks::new(&directory.path().join("judging"));
        let (older, run) = (RunId::now(), RunId::now());
        for _ in 0..2 {
            let marks = new();
            assert_eq!(marks.judge(older, || ()), Some(()));
            assert!(marks.begin(run));
        }
        let marks = new();
        assert_eq!(marks.judge(older, || ()), Some(()));
        assert_eq!(marks.judge(run, || ()), None);
    }

    #[test]
    fn an_orderly_end_of_the_process_is_not_counted() {
        let directory = tempfile::tempdir().unwrap();
        let new = || JudgingMarks::new(&directory.path().join("judging"));
        let (sound, once, twice) = (RunId::now(), RunId::now(), RunId::now());
        assert!(new().begin(once));
        assert!(new().begin(twice) && new().begin(twice));
        let marks = new();
        assert!(marks.begin(sound) && marks.begin(once));
        marks.end_all();
        let ends = [sound, once, twice].map(|run| new().ends_of(run));
        assert_eq!(ends, [0, 1, 2]);
        assert!(!marks.path(sound).exists());
        new().retain(|run| run == twice);
        assert!(!marks.path(once).exists() && marks.path(twice).exists());
    }

    #[test]
    fn run_that_may_have_ended_the_process_is_judged_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("judging");
        let [innocent, cause] = [RunId::now(), RunId::now()];
        // The process ended while both runs were judged.
        let before = JudgingMarks::new(&path);
        assert!(before.begin(innocent) && before.begin(cause));

        let marks = JudgingMarks::new(&path);
        let (begun, has_begun) = mpsc::channel();
        let (end, ends) = mpsc::channel();
        let large = marks.clone();
        let judging = thread::spawn(move || {
            large.judge(cause, || {
                begun.send(()).unwrap();
                ends.recv().unwrap();
            })
        });
        has_begun.recv().unwrap();
        let small = marks.clone();
        let waiting = thread::spawn(move || small.judge(innocent, || ()));
        thread::sleep(Duration::from_millis(200));
        assert!(!waiting.is_finished(), "another run may end the process now");
        assert_eq!(marks.ends_of(innocent), 1);
        end.send(()).unwrap();
        assert_eq!(
            (judging.join().unwrap(), waiting.join().unwrap()),
            (Some(()), Some(()))
        );
        assert_eq!([innocent, cause].map(|run| marks.ends_of(run)), [0, 0]);
    }

    #[test]
    fn runs_without_a_note_are_judged_beside_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let marks = JudgingMarks::new(&directory.path().join("judging"));
        let beside = marks.judge(RunId::now(), || marks.judge(RunId::now(), || ()));
        assert_eq!(beside, Some(Some(())));
    }
}
