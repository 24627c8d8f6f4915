//! Opens and reads log files by path, with the path in the error.

use std::{
    error::Error,
    fs::File,
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;

use super::{AccuracyReader, DetailError, DetailLog, Summary, SummaryError, TraceReader};

/// The error if a log file cannot be opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogFileError<E: Error + 'static> {
    /// The file cannot be opened.
    #[error("cannot open {path}", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The file cannot be read or parsed.
    #[error("cannot read {path}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The position and the reason.
        #[source]
        source: E,
    },
}

fn open<E: Error + 'static>(path: &Path) -> Result<BufReader<File>, LogFileError<E>> {
    let file = regular_file::open(path).map_err(|source| LogFileError::Open {
        path: path.to_owned(),
        source,
    })?;
    Ok(BufReader::with_capacity(1 << 16, file))
}

/// Reads a summary.
///
/// # Errors
/// See [`LogFileError`] and [`SummaryError`].
pub fn summary_file(path: &Path) -> Result<Summary, LogFileError<SummaryError>> {
    Summary::read(open(path)?).map_err(|source| LogFileError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Reads a detail log.
///
/// # Errors
/// See [`LogFileError`] and [`DetailError`].
pub fn detail_file(path: &Path) -> Result<DetailLog, LogFileError<DetailError>> {
    DetailLog::read(open(path)?).map_err(|source| LogFileError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Opens an accuracy log. The reader reads its entries on demand.
///
/// # Errors
/// Returns an error if the file cannot be opened.
pub fn accuracy_file(path: &Path) -> io::Result<AccuracyReader<File>> {
    Ok(AccuracyReader::new(regular_file::open(path)?))
}

/// Opens a trace. The reader reads its events on demand.
///
/// # Errors
/// Returns an error if the file cannot be opened.
pub fn trace_file(path: &Path) -> io::Result<TraceReader<BufReader<File>>> {
    Ok(TraceReader::new(BufReader::with_capacity(
        1 << 16,
        regular_file::open(path)?,
    )))
}
