//! LoadGen's logs of a run: those whose time is within the workload's.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;

use super::error::ClientError;
use crate::protocol::{file_error::FileError, timestamps::stamp_in};

/// The log with the times of begin and end.
const DETAIL: &str = "mlperf_log_detail.txt";
/// What a session has of a run.
const FILES: [&str; 2] = [DETAIL, "mlperf_log_summary.txt"];
/// How deep directories are searched.
const MAX_DEPTH: usize = 32;

/// Finds the directory below `logs` whose log begins after `begun` and ends before `ended`, in seconds since 1970.
pub(super) fn find(logs: &Path, begun: f64, ended: f64) -> Result<PathBuf, ClientError> {
    let mut open = vec![(logs.to_owned(), 0)];
    while let Some((directory, depth)) = open.pop() {
        let entries = fs::read_dir(&directory).map_err(FileError::at("read", &directory))?;
        let mut entries: Vec<_> = entries.flatten().collect();
        // In the order of names, so that the choice does not depend on the file system.
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.file_name()));
        for entry in entries {
            let path = entry.path();
            let kind = entry.file_type().map_err(FileError::at("read", &path))?;
            if kind.is_dir() && depth < MAX_DEPTH {
                open.push((path, depth + 1));
            } else if entry.file_name() == DETAIL
                && let (Some(begin), Some(end)) = times(&path)?
                && begin > begun
                && end < ended
            {
                return Ok(directory);
            }
        }
    }
    Err(ClientError::NoLogs(logs.to_owned()))
}

/// Copies a run's logs.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), ClientError> {
    for name in FILES {
        let (from, to) = (from.join(name), to.join(name));
        let mut source = regular_file::open(&from).map_err(FileError::at("read", &from))?;
        let target = fs::File::create(&to);
        target
            .and_then(|mut target| std::io::copy(&mut source, &mut target))
            .map_err(FileError::at("write", &to))?;
    }
    Ok(())
}

/// The times of begin and end in a log.
fn times(path: &Path) -> Result<(Option<f64>, Option<f64>), ClientError> {
    let file = regular_file::open(path).map_err(FileError::at("read", path))?;
    let (mut begin, mut end) = (None, None);
    for line in BufReader::new(file).split(b'\n') {
        let line = line.map_err(FileError::at("read", path))?;
        let line = String::from_utf8_lossy(&line);
        if line.contains("power_begin") {
            begin = stamp_in(&line);
        } else if line.contains("power_end") {
            end = stamp_in(&line);
        }
        if begin.is_some() && end.is_some() {
            break;
        }
    }
    Ok((begin, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_logs_of_this_run_are_found() {
        let directory = tempfile::tempdir().unwrap();
        for (name, hour) in [("old", 7), ("new/deeper", 8)] {
            let path = directory.path().join(name);
            fs::create_dir_all(&path).unwrap();
            let text = format!(
                "noise \u{fffd}\n:::MLLOG {{\"key\": \"power_begin\", \"value\": \"08-03-2022 0{hour}:11:56.642\"}}\n\
                 :::MLLOG {{\"key\": \"power_end\", \"value\": \"08-03-2022 0{hour}:12:56.642\"}}\n"
            );
            fs::write(path.join(DETAIL), text).unwrap();
            fs::write(path.join(FILES[1]), "summary").unwrap();
        }
        // 08:11:56 on that day.
        let begin = 1_659_514_316.0;
        let found = find(directory.path(), begin, begin + 100.0).unwrap();
        assert!(found.ends_with("new/deeper"));
        assert!(matches!(
            find(directory.path(), begin + 1.0, begin + 100.0),
            Err(ClientError::NoLogs(_))
        ));
        assert!(matches!(
            find(directory.path(), begin, begin + 50.0),
            Err(ClientError::NoLogs(_))
        ));
        let to = tempfile::tempdir().unwrap();
        copy(&found, to.path()).unwrap();
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 2);
        let error = copy(&found, &to.path().join("missing")).unwrap_err().to_string();
        assert!(
            error.contains("cannot write") && error.contains(DETAIL),
            "{error}"
        );
    }
}
