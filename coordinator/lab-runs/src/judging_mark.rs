//! Notes on disk which runs are being judged. If judging a run has ended the process twice, the run is not judged a third time, because every later
//! start would end in the same way. The notes do not depend on the parsers, and cover a crash in any of them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use regatta_fsutil::regular_file;
use regatta_types::RunId;

/// How often the judging of a run may end the process.
const MAX_ENDS: u32 = 2;
/// The maximum size of the note in bytes.
const MAX_NOTE: u64 = 256;

/// The notes of the judging threads.
#[derive(Debug, Clone)]
pub struct JudgingMarks {
    /// The note of the thread for small runs.
    pub(super) small: JudgingMark,
    /// The note of the thread for large runs.
    pub(super) large: JudgingMark,
}

impl JudgingMarks {
    /// Creates the marks at `path` and beside it. Writes nothing yet.
    pub fn new(path: &Path) -> Self {
        let turns = Arc::default();
        Self {
            small: JudgingMark::new(path.to_owned(), Arc::clone(&turns)),
            large: JudgingMark::new(path.with_extension("large"), turns),
        }
    }

    /// Removes the notes, because all judging has ended or the process ends for another reason.
    pub fn end(&self) {
        self.small.end();
        self.large.end();
    }
}

/// The note of a judging thread, which judges one run at a time.
#[derive(Debug, Clone)]
pub(super) struct JudgingMark {
    path: PathBuf,
    /// Shared by the threads. A thread locks it exclusively to judge a run that may have ended the process.
    turns: Arc<RwLock<()>>,
}

impl JudgingMark {
    const fn new(path: PathBuf, turns: Arc<RwLock<()>>) -> Self {
        Self { path, turns }
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
        self.end();
        Some(result)
    }

    /// Notes that judging a run begins. Returns `false` if it has ended the process too often.
    fn begin(&self, run: RunId) -> bool {
        let ends = self.ends_of(run);
        if ends >= MAX_ENDS {
            return false;
        }
        // It is not flushed: only the end of the process counts, not a power cut.
        if let Err(error) = fs::write(&self.path, format!("{run} {}\n", ends + 1)) {
            tracing::warn!(%run, "cannot note that it is being judged: {error}");
        }
        true
    }

    /// Notes that judging has ended, or that the process ends for another reason.
    pub(super) fn end(&self) {
        // A missing note is what is wanted.
        let _ = fs::remove_file(&self.path);
    }

    /// Returns the number of times that judging the run has begun without ending.
    fn ends_of(&self, run: RunId) -> u32 {
        match self.read() {
            Some((noted, begun)) if noted == run => begun,
            _ => 0,
        }
    }

    /// Returns the noted run, and how often its judging has begun.
    fn read(&self) -> Option<(RunId, u32)> {
        let bytes = regular_file::read(&self.path, MAX_NOTE).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (run, begun) = text.trim_end().split_once(' ')?;
        Some((run.parse().ok()?, begun.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use super::*;

    #[test]
    fn only_the_run_whose_judging_ended_the_process_twice_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let mark = JudgingMarks::new(&directory.path().join("judging")).small;
        let (run, other) = (RunId::now(), RunId::now());
        assert!(mark.begin(run));
        assert!(mark.begin(run), "once may be chance");
        assert!(!mark.begin(run));
        assert_eq!(mark.judge(run, || ()), None);
        assert!(mark.begin(other), "it has never ended the process");
        mark.end();
        assert!(mark.begin(other));
        fs::write(&mark.path, "no note").unwrap();
        assert!(mark.begin(other));
    }

    #[test]
    fn run_that_may_have_ended_the_process_is_judged_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("judging");
        let [innocent, cause] = [RunId::now(), RunId::now()];
        // The process ended while both runs were judged.
        let before = JudgingMarks::new(&path);
        assert!(before.small.begin(innocent) && before.large.begin(cause));

        let marks = JudgingMarks::new(&path);
        let (begun, has_begun) = mpsc::channel();
        let (end, ends) = mpsc::channel();
        let large = marks.large.clone();
        let judging = thread::spawn(move || {
            large.judge(cause, || {
                begun.send(()).unwrap();
                ends.recv().unwrap();
            })
        });
        has_begun.recv().unwrap();
        let small = marks.small.clone();
        let waiting = thread::spawn(move || small.judge(innocent, || ()));
        thread::sleep(Duration::from_millis(200));
        assert!(!waiting.is_finished(), "another run may end the process now");
        assert_eq!(marks.small.ends_of(innocent), 1);
        end.send(()).unwrap();
        assert_eq!(
            (judging.join().unwrap(), waiting.join().unwrap()),
            (Some(()), Some(()))
        );
        assert_eq!((marks.small.read(), marks.large.read()), (None, None));
    }

    #[test]
    fn runs_without_a_note_are_judged_beside_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let marks = JudgingMarks::new(&directory.path().join("judging"));
        let beside = marks
            .large
            .judge(RunId::now(), || marks.small.judge(RunId::now(), || ()));
        assert_eq!(beside, Some(Some(())));
    }
}
