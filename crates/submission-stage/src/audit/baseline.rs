//! TEST01's part III: reduces the accuracy run's log to the samples that the audit's run logged (`create_accuracy_baseline.sh`).
//!
//! The accuracies of both can then be compared. The benchmark's own script computes them.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufReader, Read, Write},
    path::Path,
};

use regatta_fsutil::regular_file;
use regatta_mllog::read::{AccuracyScanner, ScannedEntry};

use super::AuditError;
use regatta_submission_check::files::{At, FileError, replace_with};

/// The result of writing a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Baseline {
    /// The number of entries taken from the accuracy run.
    pub entries: u64,
    /// The number of samples that the audit logged and the accuracy run did not.
    pub missing: u64,
}

/// Writes to `output` the entries of `reference` whose sample occurs in `audited`, unchanged and in their order.
///
/// # Errors
/// Returns an error if a log cannot be read, is not an accuracy log or was truncated. Also fails if the baseline cannot be
/// written. `output` is then unchanged.
pub fn write_baseline(reference: &Path, audited: &Path, output: &Path) -> Result<Baseline, AuditError> {
    let mut audited_samples = HashSet::new();
    each_entry(audited, |entry| {
        audited_samples.insert(entry.qsl_idx);
        Ok(())
    })?;
    let mut source = BufReader::with_capacity(1 << 16, regular_file::open(reference).at("open", reference)?);
    let (mut place, mut entries, mut found) = (0_u64, 0_u64, HashSet::new());
    replace_with(output, |out| {
        out.write_all(b"[\n").at("write", output)?;
        each_entry(reference, |entry| {
            if !audited_samples.contains(&entry.qsl_idx) {
                return Ok(());
            }
            if entries > 0 {
                out.write_all(b",\n").at("write", output)?;
            }
            entries += 1;
            found.insert(entry.qsl_idx);
            copy(&mut source, &mut place, &entry, out).at("write", output)
        })?;
        let end: &[u8] = if entries > 0 { b"\n]\n" } else { b"]\n" };
        Ok::<_, AuditError>(out.write_all(end).at("write", output)?)
    })?;
    Ok(Baseline {
        entries,
        missing: (audited_samples.len() - found.len()) as u64,
    })
}

fn each_entry(
    path: &Path,
    mut take: impl FnMut(ScannedEntry) -> Result<(), FileError>,
) -> Result<(), AuditError> {
    let mut scanner = AccuracyScanner::new(regular_file::open(path).at("open", path)?);
    loop {
        let entry = scanner
            .next_entry(|_| ())
            .map_err(|source| AuditError::AccuracyLog {
                path: path.to_owned(),
                source,
            })?;
        match entry {
            Some(entry) => take(entry)?,
            None => return Ok(()),
        }
    }
}

/// Copies an entry's bytes. `place` is the position of `source`.
fn copy(
    source: &mut BufReader<File>,
    place: &mut u64,
    entry: &ScannedEntry,
    out: &mut impl Write,
) -> io::Result<()> {
    let ahead = i64::try_from(entry.offset - *place).map_err(io::Error::other)?;
    source.seek_relative(ahead)?;
    let copied = io::copy(&mut source.take(entry.length), out)?;
    *place = entry.offset + copied;
    if copied < entry.length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
    }
    Ok(())
}
