//! The extras of a run: files that neither the results nor the rules need. They are truncated when the disk is almost
//! full. LoadGen's own logs are never touched. The executor decides when this happens.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

/// Names of the extras.
const EXTRAS: [&str; 1] = ["run.log"];

/// The truncated extras of a run. A process may continue to append, so they are truncated repeatedly.
#[derive(Debug)]
pub(super) struct Extras {
    ended: Vec<(PathBuf, u64)>,
}

impl Extras {
    /// Stops the extras and appends a note to each file.
    pub(super) fn stop(files: &Path, free: u64) -> Self {
        let note = format!(
            "\nregatta-agent: {} MiB are free on the disk: nothing of what follows is kept\n",
            free >> 20
        );
        let end = |name: &&str| {
            let path = files.join(name);
            let mut file = OpenOptions::new().append(true).open(&path).ok()?;
            // On a full disk, the file ends without the note.
            let _ = file.write_all(note.as_bytes());
            Some((path, file.metadata().ok()?.len()))
        };
        Self {
            ended: EXTRAS.iter().filter_map(end).collect(),
        }
    }

    /// Truncates data that was appended after the stop.
    pub(super) fn truncate(&self) {
        for (path, length) in &self.ended {
            let file = OpenOptions::new().write(true).open(path);
            let longer = |file: &fs::File| file.metadata().is_ok_and(|now| now.len() > *length);
            if let Ok(file) = file
                && longer(&file)
                && let Err(e) = file.set_len(*length)
            {
                tracing::error!("{} cannot be cut: {e}", path.display());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extras_end_with_a_note_and_stay_truncated() {
        let files = tempfile::tempdir().unwrap();
        let path = files.path().join("run.log");
        fs::write(&path, "engine: hello\n").unwrap();
        fs::write(files.path().join("mlperf_log_detail.txt"), "log").unwrap();
        let extras = Extras::stop(files.path(), 7 << 20);
        let ended = fs::read_to_string(&path).unwrap();
        assert!(
            ended.starts_with("engine: hello\n\nregatta-agent: 7 MiB are free"),
            "{ended}"
        );
        let mut chatty = OpenOptions::new().append(true).open(&path).unwrap();
        for _ in 0..3 {
            chatty.write_all(b"and another thing\n").unwrap();
            extras.truncate();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), ended);
        assert_eq!(
            fs::read(files.path().join("mlperf_log_detail.txt")).unwrap(),
            b"log"
        );
    }
}
