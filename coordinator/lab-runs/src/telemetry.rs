//! Reads `telemetry.csv`: the columns that a person looks at, over time. The file is a device's text, so names and sizes are bounded.
//! `docs/device-state.md` describes its columns.

use std::{
    io::{self, BufRead as _, BufReader, Read as _},
    path::Path,
};

use regatta_fsutil::regular_file;

/// The largest file that is read, in bytes: more than a day of samples of a board with many sensors.
const MAX_FILE: u64 = 32 << 20;
/// The number of columns of each quantity that are kept.
const MAX_COLUMNS: usize = 8;
/// The number of samples that are kept. Longer runs keep the mean of several seconds.
const MAX_SAMPLES: usize = 600;
/// The number of columns and of samples of a file that are read.
const MAX_FILE_COLUMNS: usize = 4096;
const MAX_FILE_SAMPLES: usize = 200_000;
/// The longest name, in characters.
const MAX_NAME: usize = 40;
/// The phase in which LoadGen measures.
const RUNNING: &str = "running";

/// The quantity that a column measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Degrees Celsius.
    Temperature,
    /// Watts.
    Power,
    /// Megahertz.
    Clock,
    /// Percent of all processors.
    Load,
    /// Gibibytes of memory in use.
    Memory,
}

impl Quantity {
    /// Every quantity.
    pub const ALL: [Self; 5] = [
        Self::Temperature,
        Self::Power,
        Self::Clock,
        Self::Load,
        Self::Memory,
    ];

    /// Returns the quantity's name and unit.
    pub const fn title(self) -> (&'static str, &'static str) {
        match self {
            Self::Temperature => ("Temperature", "°C"),
            Self::Power => ("Power", "W"),
            Self::Clock => ("Clocks", "MHz"),
            Self::Load => ("Processor load", "%"),
            Self::Memory => ("Memory in use", "GiB"),
        }
    }

    /// Returns a column's quantity, the divisor of its numbers and its name, or `None` for a column that is not kept.
    fn of(column: &str) -> Option<(Self, f64, &str)> {
        let (kind, name) = column.split_once(':').unwrap_or((column, ""));
        Some(match kind {
            "millicelsius" => (Self::Temperature, 1e3, name),
            "milliwatts" => (Self::Power, 1e3, name),
            "cpu_khz" => (Self::Clock, 1e3, column),
            "gpu_hz" | "memory_hz" => (Self::Clock, 1e6, column),
            "cpu_busy_percent" => (Self::Load, 1.0, "all processors"),
            "memory_used_kib" => (Self::Memory, 1_048_576.0, "memory"),
            _ => return None,
        })
    }
}

/// A column: a sensor's values, one for each time.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryColumn {
    /// The quantity that it measures.
    pub quantity: Quantity,
    /// The sensor's name, as the device wrote it, at most 40 characters.
    pub name: String,
    /// The values in the quantity's unit.
    pub values: Vec<Option<f64>>,
}

/// A run's telemetry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunTelemetry {
    /// The times in seconds since the first sample.
    pub seconds: Vec<f64>,
    /// The number of samples in the mean of one value.
    pub merged: usize,
    /// The time in which LoadGen measured: the first and the last sample in that phase.
    pub window: Option<[f64; 2]>,
    pub columns: Vec<TelemetryColumn>,
}

/// Reads the telemetry in the directory of a run's files. `None` when the run has none.
///
/// # Errors
/// Returns an error when the file cannot be read or is larger than any.
pub fn read_telemetry(files: &Path) -> io::Result<Option<RunTelemetry>> {
    let file = match regular_file::open(&files.join("telemetry.csv")) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if file.metadata()?.len() > MAX_FILE {
        let sentence = format!("it is larger than {} MiB", MAX_FILE >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, sentence));
    }
    let mut bytes = Vec::new();
    BufReader::new(file).take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(parse(&bytes))
}

fn parse(bytes: &[u8]) -> Option<RunTelemetry> {
    let mut lines = bytes.lines().map_while(Result::ok);
    let headline = lines.next()?;
    let names: Vec<&str> = headline.split(',').take(MAX_FILE_COLUMNS).collect();
    let at = |name: &str| names.iter().position(|found| *found == name);
    let (time_at, phase_at) = (at("seconds")?, at("phase"));
    let mut found = RunTelemetry {
        merged: 1,
        ..RunTelemetry::default()
    };
    let mut kept: Vec<(usize, f64)> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let Some((quantity, divisor, name)) = Quantity::of(name) else {
            continue;
        };
        let same = found.columns.iter().filter(|column| column.quantity == quantity);
        if same.count() < MAX_COLUMNS {
            kept.push((index, divisor));
            found.columns.push(TelemetryColumn {
                quantity,
                name: name.chars().take(MAX_NAME).collect(),
                values: Vec::new(),
            });
        }
    }
    for line in lines.take(MAX_FILE_SAMPLES) {
        let cells: Vec<&str> = line.split(',').take(names.len() + 1).collect();
        let number = |index: usize| -> Option<f64> {
            let value: f64 = cells.get(index)?.parse().ok()?;
            value.is_finite().then_some(value)
        };
        // A line that was cut off at the end of the file has no time.
        let Some(seconds) = number(time_at).filter(|_| cells.len() == names.len()) else {
            continue;
        };
        if phase_at.and_then(|index| cells.get(index)) == Some(&RUNNING) {
            found.window = Some([found.window.map_or(seconds, |[from, _]| from), seconds]);
        }
        found.seconds.push(seconds);
        for (column, (index, divisor)) in found.columns.iter_mut().zip(&kept) {
            column.values.push(number(*index).map(|value| value / divisor));
        }
    }
    found
        .columns
        .retain(|column| column.values.iter().any(Option::is_some));
    found.merge();
    Some(found)
}

impl RunTelemetry {
    /// Merges neighbouring samples until few enough are left.
    fn merge(&mut self) {
        let merged = self.seconds.len().div_ceil(MAX_SAMPLES).max(1);
        if merged == 1 {
            return;
        }
        self.merged = merged;
        self.seconds = self
            .seconds
            .chunks(merged)
            .filter_map(|chunk| chunk.first().copied())
            .collect();
        for column in &mut self.columns {
            column.values = column.values.chunks(merged).map(mean).collect();
        }
    }

    /// Returns a column's lowest, mean and highest value while LoadGen measured, or over the complete run if it did not measure.
    pub fn summary(&self, column: &TelemetryColumn) -> Option<[f64; 3]> {
        let is_measured = |seconds: f64| match self.window {
            Some([from, to]) => (from..=to).contains(&seconds),
            None => true,
        };
        let values: Vec<f64> = self
            .seconds
            .iter()
            .zip(&column.values)
            .filter(|(seconds, _)| is_measured(**seconds))
            .filter_map(|(_, value)| *value)
            .collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        Some([low, mean, high])
    }
}

fn mean(values: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "seconds,monotonic_ns,phase,cpu_busy_percent,cpu_khz:0,gpu_hz,millicelsius:tj,milliwatts:VDD_IN,rpm:fan\n\
                        0.000,1,preparing,10,1190400,306000000,46218,7600,900\n\
                        1.000,2,running,80,1190400,1300500000,48000,,900\n\
                        2.000,3,running,90,1190400,1300500000,50000,15000,900\n\
                        3.0";

    #[test]
    fn columns_are_read_in_their_units() {
        let found = parse(TEXT.as_bytes()).unwrap();
        assert_eq!(found.seconds, [0.0, 1.0, 2.0]);
        assert_eq!(found.window, Some([1.0, 2.0]));
        let names: Vec<_> = found.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["all processors", "cpu_khz:0", "gpu_hz", "tj", "VDD_IN"]);
        assert_eq!(found.columns[1].values[0], Some(1190.4));
        assert_eq!(found.summary(&found.columns[3]), Some([48.0, 49.0, 50.0]));
        assert_eq!(found.summary(&found.columns[4]), Some([15.0, 15.0, 15.0]));
    }

    #[test]
    fn a_long_run_keeps_means() {
        let mut text = "seconds,millicelsius:a\n".to_owned();
        for second in 0..1_200 {
            text.push_str(&format!(
                "{second},{}\n",
                if second % 2 == 0 { 40_000 } else { 50_000 }
            ));
        }
        let found = parse(text.as_bytes()).unwrap();
        assert_eq!((found.merged, found.seconds.len()), (2, 600));
        assert_eq!(found.columns[0].values[7], Some(45.0));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, columns in 0_usize..40) {
            drop(parse(&bytes));
            let headline = format!("seconds{}\n", ",milliwatts:x".repeat(columns));
            let found = parse(&[headline.as_bytes(), b"1", &bytes].concat()).unwrap();
            assert!(found.columns.len() <= MAX_COLUMNS);
        }
    }
}
