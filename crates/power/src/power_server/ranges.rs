//! The ranges of the testing run: the largest volts and amperes of the ranging run, from PTDaemon's own line per sample.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    path::Path,
};

use super::error::ServerError;
use crate::{protocol::file_error::FileError, ptd, server_conf::AnalyzerConf};

/// The testing run's current may be larger than the ranging run's by this factor.
const AMPS_MARGIN: f64 = 1.1;

/// Ranges in the words that set them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestingRanges {
    pub(super) volts: String,
    pub(super) amps: String,
}

/// The largest values that were seen.
#[derive(Debug, Clone, Copy, Default)]
struct Largest {
    volts: f64,
    amps: f64,
}

impl Largest {
    /// Takes the values behind the labels `Volts` and `Amps`. Only positive numbers are measurements.
    fn take(&mut self, fields: &[&str]) {
        let after = |label: &str| {
            let at = fields.iter().position(|field| *field == label)?;
            let value: f64 = fields.get(at + 1)?.parse().ok()?;
            (value.is_finite() && value > 0.0).then_some(value)
        };
        self.volts = self.volts.max(after("Volts").unwrap_or_default());
        self.amps = self.amps.max(after("Amps").unwrap_or_default());
    }

    fn is_complete(self) -> bool {
        self.volts > 0.0 && self.amps > 0.0
    }
}

/// Finds the ranges for a meter in the file `samples`, from the lines with this mark.
pub(super) fn testing_ranges(
    number: usize,
    conf: &AnalyzerConf,
    samples: &Path,
    mark: &str,
) -> Result<TestingRanges, ServerError> {
    let channels = channels(conf);
    // Of a meter with one channel, or of each channel.
    let mut largest = vec![Largest::default(); channels.len().max(1)];
    let file = File::open(samples).map_err(FileError::at("read", samples))?;
    for line in BufReader::new(file).split(b'\n') {
        let line = line.map_err(FileError::at("read", samples))?;
        let line = String::from_utf8_lossy(&line);
        let fields: Vec<&str> = line.trim_end().split(',').collect();
        if fields.first() != Some(&"Time") || fields.get(10..12) != Some(&["Mark", mark]) {
            continue;
        }
        if channels.is_empty() {
            largest[0].take(&fields[..10]);
        }
        for (channel, largest) in channels.iter().zip(&mut largest) {
            let name = format!("Ch{channel}");
            if let Some(at) = fields.iter().position(|field| *field == name) {
                let end = fields.len().min(at + 9);
                largest.take(&fields[at..end]);
            }
        }
    }
    for (at, seen) in largest.iter().enumerate() {
        if !seen.is_complete() {
            let channel = channels.get(at).map(|channel| format!(" of channel {channel}"));
            let channel = channel.unwrap_or_default();
            return Err(ServerError::NoSample { number, channel });
        }
    }
    let most = |value: fn(&Largest) -> f64| largest.iter().map(value).fold(0.0, f64::max);
    Ok(TestingRanges {
        volts: format!("{:.6}", most(|largest| largest.volts)),
        amps: (most(|largest| largest.amps) * AMPS_MARGIN).to_string(),
    })
}

/// The channels that are measured; none for a meter with one.
fn channels(conf: &AnalyzerConf) -> Vec<i64> {
    match conf.channel.as_slice() {
        [count, ..] if conf.device_type == ptd::WT500_MULTICHANNEL => (1..=*count).collect(),
        [first, count] => (*first..first.saturating_add(*count)).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn ranges(device_type: i64, channel: &[i64], lines: &[&str]) -> Result<TestingRanges, ServerError> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("log");
        fs::write(&file, lines.join("\n")).unwrap();
        let conf = AnalyzerConf {
            device_type,
            channel: channel.to_vec(),
            ..AnalyzerConf::default()
        };
        testing_ranges(1, &conf, &file, "a_ranging")
    }

    #[test]
    fn the_largest_volts_and_amperes_of_the_run_count() {
        let lines = [
            "banner",
            "Time,t,Watts,9,Volts,240.0,Amps,9.0,PF,1,Mark,notset",
            "Time,t,Watts,9,Volts,118.500000,Amps,2.169000,PF,1,Mark,a_ranging",
            "Time,t,Watts,9,Volts,117.0,Amps,2.0,PF,1,Mark,a_ranging",
            "Time,t,Watts,nan,Volts,nan,Amps,inf,PF,nan,Mark,a_ranging",
            "Time,t,Watts,9,Volts,300.0,Amps,3.0,PF,1,Mark,a_testing",
            "Time,t,Wat",
        ];
        let found = ranges(49, &[], &lines).unwrap();
        assert_eq!(
            (found.volts.as_str(), found.amps.as_str()),
            ("118.500000", "2.3859000000000004")
        );
        let error = ranges(49, &[], &lines[..2]).unwrap_err().to_string();
        assert!(error.contains("no sample of the ranging run"), "{error}");
    }

    #[test]
    fn only_the_selected_channels_count() {
        let line = "Time,t,Watts,9,Volts,-1.0,Amps,-1.0,PF,-1.0,Mark,a_ranging,\
                    Ch1,Watts,1,Volts,100.0,Amps,1.0,PF,1,Ch2,Watts,1,Volts,110.0,Amps,2.0,PF,1,Ch3,Watts,1,Volts,120.0,Amps,3.0,PF,1";
        let volts = |device, channel: &[i64]| ranges(device, channel, &[line]).map(|found| found.volts);
        assert_eq!(volts(77, &[1, 2]).unwrap(), "110.000000");
        assert_eq!(volts(77, &[3, 1]).unwrap(), "120.000000");
        assert_eq!(volts(48, &[1]).unwrap(), "100.000000");
        let error = volts(77, &[3, 2]).unwrap_err().to_string();
        assert!(error.contains("channel 4"), "{error}");
    }
}
