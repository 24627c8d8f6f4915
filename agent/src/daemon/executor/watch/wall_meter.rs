//! A power meter between the wall and the board, such as a smart plug or a USB meter. Its figures are informative: only a listed meter behind
//! PTDaemon gives official ones. A program of the lab reads the meter and rewrites a file; no meter's own protocol is spoken here.

use std::{
    fmt, fs, io,
    path::PathBuf,
    time::{Duration, SystemTime},
};

/// Age from which a reading no longer counts: its program has ended, or has lost the meter.
const MAX_AGE: Duration = Duration::from_secs(5);
/// Largest file in bytes.
const MAX: u64 = 64;

/// A meter that is read once a second.
pub(super) trait WallMeter: fmt::Debug + Send {
    /// Returns the power in milliwatts, or `None` without a current reading.
    fn milliwatts(&mut self) -> Option<u64>;
}

/// A meter whose newest reading is an integer number of milliwatts in a file. Its program may rewrite the file or replace it by `rename`.
#[derive(Debug)]
pub(super) struct WallMeterFile(pub(super) PathBuf);

impl WallMeterFile {
    fn read(&self) -> io::Result<Option<u64>> {
        let about = fs::metadata(&self.0)?;
        // A time in the future is as doubtful as an old one: the clock was set, so the time of the write is unknown.
        let modified = about.modified()?;
        let age = SystemTime::now()
            .duration_since(modified)
            .unwrap_or_else(|ahead| ahead.duration());
        // A pipe would block the samples.
        if !about.is_file() || about.len() > MAX || age > MAX_AGE {
            return Ok(None);
        }
        Ok(fs::read_to_string(&self.0)?.trim().parse().ok())
    }
}

impl WallMeter for WallMeterFile {
    fn milliwatts(&mut self) -> Option<u64> {
        self.read().ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_current_number_counts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("milliwatts");
        let mut meter = WallMeterFile(path.clone());
        assert_eq!(meter.milliwatts(), None, "no program has written yet");
        fs::write(&path, "18250\n").unwrap();
        assert_eq!(meter.milliwatts(), Some(18_250));
        for wrong in ["", "18.25 W", "-3", &"1".repeat(65)] {
            fs::write(&path, wrong).unwrap();
            assert_eq!(meter.milliwatts(), None, "{wrong}");
        }
        let replacement = directory.path().join("new");
        fs::write(&replacement, "19000").unwrap();
        fs::rename(&replacement, &path).unwrap();
        assert_eq!(meter.milliwatts(), Some(19_000));
        for age in [6, 3_600] {
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age))
                .unwrap();
            assert_eq!(meter.milliwatts(), None, "{age} s old");
        }
    }
}
