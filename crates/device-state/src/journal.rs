//! The journal: the values of all controls before a state was applied. It is on disk from before the first change until
//! everything is restored, so that the next helper can restore them after a crash. It does not restore anything itself.
//!
//! The file has one line for each control:
//!
//! ```text
//! regatta-state journal 1
//! boot 6f0e...
//! before gpu-max 1300500000
//! end
//! ```

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
};

use crate::device_control::DeviceControl;

const FIRST_LINE: &str = "regatta-state journal 1";

/// The state of a board before a request was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedState {
    /// The kernel's boot id at that time.
    pub boot: String,
    /// The values of the controls that the request may change.
    pub controls: BTreeMap<DeviceControl, String>,
}

/// The journal's directory with its lock. Only one helper at a time can hold it, and so apply or restore a state.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    _lock: File,
}

impl Journal {
    /// Opens and locks the journal. Returns `None` while another helper has locked it.
    ///
    /// # Errors
    /// When the lock file cannot be created or locked.
    pub fn open(directory: impl Into<PathBuf>) -> io::Result<Option<Self>> {
        let directory = directory.into();
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(directory.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self {
                directory,
                _lock: lock,
            })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(e)) => Err(e),
        }
    }

    /// Reads the state that an earlier helper did not restore. Returns `None` when there is no journal file.
    ///
    /// # Errors
    /// When the file cannot be read or parsed. A helper renames complete files into place, so that an invalid one was
    /// written by another program.
    pub fn read(&self) -> io::Result<Option<SavedState>> {
        match fs::read_to_string(self.path()) {
            Ok(text) => {
                let invalid = || {
                    let path = self.path();
                    let text = format!(
                        "{} is not a journal of regatta-state; hint: reboot the board, then remove the file",
                        path.display()
                    );
                    io::Error::new(io::ErrorKind::InvalidData, text)
                };
                parse(&text).map(Some).ok_or_else(invalid)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Writes a saved state. Once this returns, the file survives a power cut.
    ///
    /// # Errors
    /// When the file cannot be written. The caller must then change nothing on the board.
    pub fn write(&self, saved: &SavedState) -> io::Result<()> {
        let mut text = format!("{FIRST_LINE}\nboot {}\n", saved.boot);
        for (control, value) in &saved.controls {
            let _ = writeln!(text, "before {control} {value}");
        }
        text.push_str("end\n");
        let new = self.directory.join("journal.new");
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, self.path())?;
        self.flush()
    }

    /// Removes the file, after everything is restored.
    ///
    /// # Errors
    /// When the file cannot be removed. The next helper then restores the same values once more, which changes nothing.
    pub fn clear(&self) -> io::Result<()> {
        fs::remove_file(self.path())?;
        self.flush()
    }

    fn flush(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }

    fn path(&self) -> PathBuf {
        self.directory.join("journal")
    }
}

fn parse(text: &str) -> Option<SavedState> {
    let mut lines = text.lines();
    if lines.next()? != FIRST_LINE {
        return None;
    }
    let boot = lines.next()?.strip_prefix("boot ")?.to_owned();
    let mut controls = BTreeMap::new();
    for line in lines {
        if line == "end" {
            return Some(SavedState { boot, controls });
        }
        let (control, value) = line.strip_prefix("before ")?.split_once(' ')?;
        controls.insert(control.parse().ok()?, value.to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_round_trips_and_is_locked_by_one_helper() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path()).unwrap().unwrap();
        assert!(
            Journal::open(directory.path()).unwrap().is_none(),
            "a second helper got the lock"
        );
        assert_eq!(journal.read().unwrap(), None);
        let saved = SavedState {
            boot: "b-1".to_owned(),
            controls: [
                (DeviceControl::GpuMax, "7".to_owned()),
                (DeviceControl::Core(3), "1".to_owned()),
            ]
            .into(),
        };
        journal.write(&saved).unwrap();
        assert_eq!(journal.read().unwrap(), Some(saved));
        journal.clear().unwrap();
        assert_eq!(journal.read().unwrap(), None);
    }

    #[test]
    fn garbage_is_refused() {
        for text in [
            "",
            "x\n",
            "regatta-state journal 1\nboot b\nbefore gpu-max 7\n",
            "regatta-state journal 1\nboot b\nbefore /etc/passwd 7\nend\n",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
