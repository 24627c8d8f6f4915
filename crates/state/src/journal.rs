//! What was found before a state was set, on disk before the first change and until the last one is undone: whatever dies
//! in between, the next helper knows what to put back. One line for each knob:
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

use crate::knob::Knob;

const FIRST_LINE: &str = "regatta-state journal 1";

/// What was found before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// The boot in which that was.
    pub boot: String,
    /// The knobs.
    pub knobs: BTreeMap<Knob, String>,
}

/// The journal's directory, locked: one helper at a time sets or puts back.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    _lock: File,
}

impl Journal {
    /// Opens the journal; `None` while another helper holds it.
    ///
    /// # Errors
    /// When the directory cannot be used.
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

    /// What a helper has left to be put back.
    ///
    /// # Errors
    /// When it cannot be read or understood: it is only ever renamed into place whole, so that somebody else wrote it.
    pub fn read(&self) -> io::Result<Option<Before>> {
        match fs::read_to_string(self.path()) {
            Ok(text) => {
                let damaged = || {
                    let path = self.path();
                    let text = format!(
                        "{} cannot be understood; reboot the board and remove it",
                        path.display()
                    );
                    io::Error::new(io::ErrorKind::InvalidData, text)
                };
                parse(&text).map(Some).ok_or_else(damaged)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Writes down what was found; when this returns, a power cut does not lose it.
    ///
    /// # Errors
    /// When the disk refuses: then nothing may be changed.
    pub fn write(&self, before: &Before) -> io::Result<()> {
        let mut text = format!("{FIRST_LINE}\nboot {}\n", before.boot);
        for (knob, value) in &before.knobs {
            let _ = writeln!(text, "before {knob} {value}");
        }
        text.push_str("end\n");
        let beside = self.directory.join("journal.new");
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, self.path())?;
        self.flush()
    }

    /// Everything is put back.
    ///
    /// # Errors
    /// When the disk refuses: the next helper puts back once more what is in place already.
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

fn parse(text: &str) -> Option<Before> {
    let mut lines = text.lines();
    if lines.next()? != FIRST_LINE {
        return None;
    }
    let boot = lines.next()?.strip_prefix("boot ")?.to_owned();
    let mut knobs = BTreeMap::new();
    for line in lines {
        if line == "end" {
            return Some(Before { boot, knobs });
        }
        let (knob, value) = line.strip_prefix("before ")?.split_once(' ')?;
        knobs.insert(knob.parse().ok()?, value.to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_written_and_held_by_one() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path()).unwrap().unwrap();
        assert!(
            Journal::open(directory.path()).unwrap().is_none(),
            "another one holds it"
        );
        assert_eq!(journal.read().unwrap(), None);
        let before = Before {
            boot: "b-1".to_owned(),
            knobs: [(Knob::GpuMax, "7".to_owned()), (Knob::Core(3), "1".to_owned())].into(),
        };
        journal.write(&before).unwrap();
        assert_eq!(journal.read().unwrap(), Some(before));
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
