//! The distribution of a run's latencies: the points of it that LoadGen writes into the detail log. LoadGen keeps no latency of a single
//! query there, so this module has no other points either.

use std::{
    fs::File,
    io::{self, BufReader, Read as _},
    path::Path,
};

use regatta_fsutil::regular_file;
use regatta_mllog::{
    latency_keys::{LISTED_PERCENTILES, LatencyKeys},
    read::{DetailReader, file_name},
};
use regatta_types::{Scenario, documents::RunSpec};

/// The largest detail log that is read, in bytes. A summary of a run is some 30 kB.
const MAX_LOG: u64 = 16 << 20;

/// One point: a share of the latencies is at most this long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyPoint {
    /// The share from 0 (the shortest) to 1 (the longest).
    pub share: f64,
    /// The latency in nanoseconds.
    pub nanoseconds: f64,
}

/// The distribution of a run's latencies.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LatencyDistribution {
    /// Its points, by share.
    pub points: Vec<LatencyPoint>,
    /// The mean in nanoseconds.
    pub mean: Option<f64>,
    /// The percentile by which the scenario is judged, as a share. `None` in Offline, which is judged by its rate.
    pub judged_share: Option<f64>,
    /// The bound that this percentile must not exceed in Server, in nanoseconds.
    pub bound: Option<f64>,
}

/// Reads the distribution from the log in the directory of a run's files. `None` when the run has no such log or no latencies in it.
///
/// # Errors
/// Returns an error when the log cannot be read or is larger than any.
pub fn read_latencies(files: &Path, spec: &RunSpec) -> io::Result<Option<LatencyDistribution>> {
    let log = match regular_file::open(&files.join(file_name::DETAIL)) {
        Ok(log) => log,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if log.metadata()?.len() > MAX_LOG {
        let sentence = format!("it is larger than {} MiB", MAX_LOG >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, sentence));
    }
    Ok(read(log, spec.scenario))
}

fn read(log: File, scenario: Scenario) -> Option<LatencyDistribution> {
    let keys = match scenario {
        Scenario::MultiStream => LatencyKeys::QUERIES,
        _ => LatencyKeys::SAMPLES,
    };
    let listed = LISTED_PERCENTILES.map(|percentile| (keys.percentile(percentile), percentile.fraction));
    let mut found = LatencyDistribution::default();
    for record in DetailReader::new(BufReader::new(log.take(MAX_LOG))).flatten() {
        let value = || {
            record
                .value
                .as_f64()
                .filter(|value| value.is_finite() && *value > 0.0)
        };
        let share = match record.key.as_str() {
            key if key == keys.min => Some(0.0),
            key if key == keys.max => Some(1.0),
            key if key == keys.mean => {
                found.mean = value();
                None
            }
            "effective_target_latency_percentile" if scenario != Scenario::Offline => {
                found.judged_share = value().filter(|share| *share < 1.0);
                None
            }
            "effective_target_latency_ns" if scenario == Scenario::Server => {
                found.bound = value();
                None
            }
            key => listed
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, share)| *share),
        };
        if let (Some(share), Some(nanoseconds)) = (share, value()) {
            found.points.push(LatencyPoint { share, nanoseconds });
        }
    }
    found
        .points
        .sort_by(|one, other| one.share.total_cmp(&other.share));
    found.points.dedup_by(|one, other| one.share == other.share);
    (!found.points.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use super::*;

    fn log(lines: &[(&str, f64)]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        for (key, value) in lines {
            writeln!(
                file,
                ":::MLLOG {{\"key\": \"{key}\", \"value\": {value}, \"metadata\": {{\"is_error\": false}}}}"
            )
            .unwrap();
        }
        file.rewind().unwrap();
        file
    }

    #[test]
    fn points_are_those_of_the_log_by_share() {
        let lines = [
            ("effective_target_latency_percentile", 0.99),
            ("effective_target_latency_ns", 10e6),
            ("result_max_latency_ns", 9e6),
            ("result_min_latency_ns", 1e6),
            ("result_mean_latency_ns", 2e6),
            ("result_99.00_percentile_latency_ns", 8e6),
            ("result_50.00_percentile_latency_ns", 1.5e6),
        ];
        let server = read(log(&lines), Scenario::Server).unwrap();
        let points: Vec<_> = server
            .points
            .iter()
            .map(|point| (point.share, point.nanoseconds))
            .collect();
        assert_eq!(points, [(0.0, 1e6), (0.5, 1.5e6), (0.99, 8e6), (1.0, 9e6)]);
        assert_eq!(
            (server.mean, server.judged_share, server.bound),
            (Some(2e6), Some(0.99), Some(10e6))
        );
        let offline = read(log(&lines), Scenario::Offline).unwrap();
        assert_eq!((offline.judged_share, offline.bound), (None, None));
        // MultiStream has latencies of queries.
        assert_eq!(read(log(&lines), Scenario::MultiStream), None);
    }
}
