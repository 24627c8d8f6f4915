//! Notes on disk which run is being judged. A run whose judging ended the process twice is not judged a third time, because every start
//! would end in the same way. The note has no part in judging, and works for every parser.

use std::{fs, path::PathBuf};

use regatta_fsutil::regular_file;
use regatta_types::RunId;

/// How often the judging of a run may end the process.
const MAX_ENDS: u32 = 2;
/// The maximum size of the note in bytes.
const MAX_NOTE: u64 = 256;

/// The note of the run that is being judged. One run is judged at a time.
#[derive(Debug, Clone)]
pub struct JudgingMark {
    path: PathBuf,
}

impl JudgingMark {
    /// Creates the mark at a path. Nothing is written yet.
    pub const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Notes that judging of a run begins. Returns `false` when it has ended the process too often.
    pub(super) fn begin(&self, run: RunId) -> bool {
        let ends = match self.read() {
            Some((noted, begun)) if noted == run => begun,
            _ => 0,
        };
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
    pub fn end(&self) {
        // A missing note is what is wanted.
        let _ = fs::remove_file(&self.path);
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
    use super::*;

    #[test]
    fn only_the_run_whose_judging_ended_the_process_twice_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let mark = JudgingMark::new(directory.path().join("judging"));
        let (run, other) = (RunId::now(), RunId::now());
        assert!(mark.begin(run));
        assert!(mark.begin(run), "once may be chance");
        assert!(!mark.begin(run));
        assert!(mark.begin(other), "it has never ended the process");
        mark.end();
        assert!(mark.begin(other));
        fs::write(&mark.path, "no note").unwrap();
        assert!(mark.begin(other));
    }
}
