//! The marks in the output of commands that another command of Regatta reads: failures, and failed checks. It prints nothing.

/// The beginning of a printed failure.
pub const FAILURE: &str = "regatta: ";
/// The beginning of the line of a failed check.
pub const FAILED_CHECK: &str = "FAIL";

/// Returns the lines of the last failure in a command's output: its error chain, then its hint. Without a failure, returns none.
pub fn failure_lines(output: &str) -> impl Iterator<Item = &str> {
    let start = output
        .match_indices(FAILURE)
        .map(|(at, _)| at)
        .filter(|at| *at == 0 || output[..*at].ends_with('\n'))
        .last();
    let failure = start.map_or("", |at| &output[at + FAILURE.len()..]);
    failure.lines().map(str::trim).filter(|line| !line.is_empty())
}
