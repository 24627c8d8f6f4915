//! PTDaemon's own file of samples, followed while it grows. The official server keeps it in its temporary directory.

use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

/// The name that the official server gives to the file of the first analyzer.
pub const SAMPLES_NAME: &str = "ptd_logfile_1.log";

/// The longest line of the file. PTDaemon's are shorter.
const MAX_LINE: usize = 64 << 10;
/// The bytes that are read at once. The rest comes with the next call.
const MAX_READ: u64 = 1 << 20;

/// A file of samples as far as it was read.
#[derive(Debug, Default)]
pub struct SampleLog {
    position: u64,
    /// The beginning of a line that is not complete.
    rest: String,
}

impl SampleLog {
    /// The offset to read from in a file of this length. PTDaemon is started anew for the session, and begins its file anew.
    pub fn offset(&mut self, length: u64) -> u64 {
        if length < self.position {
            *self = Self::default();
        }
        self.position
    }

    /// Takes the bytes from the offset on, and returns the watts of the samples that are complete with them.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<f64> {
        self.position += bytes.len() as u64;
        self.rest.push_str(&String::from_utf8_lossy(bytes));
        let complete = self.rest.rfind('\n').map_or(0, |at| at + 1);
        let lines: String = self.rest.drain(..complete).collect();
        if self.rest.len() > MAX_LINE {
            self.rest.clear();
        }
        lines.lines().filter_map(watts).collect()
    }
}

/// The file of samples in a directory of this machine.
#[derive(Debug)]
pub(super) struct SampleFiles {
    /// The directory whose subdirectories are the server's temporary ones.
    temporary: PathBuf,
    log: SampleLog,
}

impl SampleFiles {
    pub(super) fn new(temporary: &Path) -> Self {
        Self {
            temporary: temporary.to_owned(),
            log: SampleLog::default(),
        }
    }

    /// The watts of the samples since the last call. A file that cannot be read yet has none.
    pub(super) fn read(&mut self) -> Vec<f64> {
        match self.new_bytes() {
            Some(bytes) => self.log.take(&bytes),
            None => Vec::new(),
        }
    }

    fn new_bytes(&mut self) -> Option<Vec<u8>> {
        let entries = fs::read_dir(&self.temporary).ok()?;
        let path = entries
            .flatten()
            .map(|entry| entry.path().join(SAMPLES_NAME))
            .find(|path| path.is_file())?;
        let mut file = File::open(path).ok()?;
        let offset = self.log.offset(file.metadata().ok()?.len());
        file.seek(SeekFrom::Start(offset)).ok()?;
        let mut bytes = Vec::new();
        file.take(MAX_READ).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// The watts of a line `Time,<time>,Watts,<watts>,...`.
fn watts(line: &str) -> Option<f64> {
    let mut fields = line.split(',');
    let is_sample = fields.next() == Some("Time") && fields.nth(1) == Some("Watts");
    is_sample.then(|| fields.next()?.trim().parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn follows_a_file_that_grows_and_begins_anew() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = SampleFiles::new(directory.path());
        assert!(log.read().is_empty());
        let below = directory.path().join("tmpx");
        fs::create_dir(&below).unwrap();
        let mut file = File::create(below.join(SAMPLES_NAME)).unwrap();
        file.write_all(b"banner\nTime,07-30-2022 04:40:04.430,Watts,11.47,Volts,206.7\nTime,07-30-")
            .unwrap();
        assert_eq!(log.read(), [11.47]);
        file.write_all(b"2022 04:40:05.430,Watts,12.5,Volts\n").unwrap();
        assert_eq!(log.read(), [12.5]);
        assert!(log.read().is_empty());
        fs::write(below.join(SAMPLES_NAME), "Time,x,Watts,1,\n").unwrap();
        assert_eq!(log.read(), [1.0]);
    }
}
