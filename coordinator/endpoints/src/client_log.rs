//! The client's log while it grows. The client draws a bar there: `NAME:  7%|▋    | 146/2002 [02:03<26:11, 1.18it/s]`.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
};

/// The end of the log in which the bar is looked for, in bytes.
const TAIL: u64 = 8 << 10;

/// Returns the number of answers that the bar shows.
pub(crate) fn completed(log: &Path) -> io::Result<Option<u64>> {
    Ok(last_count(&tail(log)?))
}

/// Returns the line that says why a client failed: the last error, or the last line. Python prints warnings after it.
pub(crate) fn failure(log: &Path) -> io::Result<String> {
    Ok(failure_in(&tail(log)?))
}

fn tail(log: &Path) -> io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    let _ = file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    let _ = file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn failure_in(text: &str) -> String {
    let lines = || text.split(['\r', '\n']).map(str::trim);
    let errors = lines().filter(|line| line.contains("ERROR") || line.contains("Error: "));
    let last = errors.last().or_else(|| lines().rfind(|line| !line.is_empty()));
    last.unwrap_or("it printed nothing").to_owned()
}

fn last_count(text: &str) -> Option<u64> {
    text.split(['\r', '\n']).rev().find_map(|line| {
        let (_, after) = line.rsplit_once("| ")?;
        let (count, rest) = after.split_once('/')?;
        let (total, _) = rest.split_once(" [")?;
        let _: u64 = total.parse().ok()?;
        count.trim().parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_state_of_the_bar_counts() {
        let text = "starts\rsmall:   7%|▋         | 146/2002 [02:03<26:11,  1.18it/s]\rsmall:   8%|▊         | 170/2002 [02:03<22:12]\nINFO - a | b\n";
        assert_eq!(last_count(text), Some(170));
        assert_eq!(last_count("INFO\n"), None);
    }

    #[test]
    fn the_last_error_is_the_reason_and_not_a_warning_behind_it() {
        let log = "INFO starts\n  raise TimeoutError\nTimeoutError: workers not ready after 60.0 s\n\nsys:1: DeprecationWarning: builtin\n";
        assert_eq!(failure_in(log), "TimeoutError: workers not ready after 60.0 s");
        assert_eq!(failure_in("starts\nends\n\n"), "ends");
        assert_eq!(failure_in(""), "it printed nothing");
    }
}
