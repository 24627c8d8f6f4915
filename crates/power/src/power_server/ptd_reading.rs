//! The samples of a run, read from a meter.

use super::{analyzer::Analyzer, error::ServerError};
use crate::ptd::reply;

/// The largest number of samples of a measurement.
const MAX_SAMPLES: usize = 500_000;
/// Reads the samples of a measurement that has ended. Also asks for the uncertainty and the mean, which only the messages keep.
pub(super) fn read_samples(analyzer: &mut Analyzer) -> Result<Vec<String>, ServerError> {
    let mut command = "RL,*,*";
    let mut header = analyzer.query(command)?;
    // Only meters with several channels know the first command, and those for direct current have one of their own.
    if header.contains(reply::INVALID_PARAMETERS.trim_start_matches("Error: ")) {
        command = "RL";
        header = analyzer.query(command)?;
    } else if header.contains(reply::UNKNOWN_COMMAND.trim_start_matches("Error: ")) {
        command = "DC-RL";
        header = analyzer.query(command)?;
    }
    let count = header.split(' ').nth(1).and_then(|count| count.parse().ok());
    let count: usize = match count.filter(|count| *count <= MAX_SAMPLES) {
        Some(count) => count,
        None => return Err(analyzer.refusal(command, header)),
    };
    let lines = analyzer.lines(count, command)?;
    analyzer.query("Uncertainty")?;
    analyzer.query("Watts")?;
    Ok(lines)
}
