//! The readings of a meter before a session: the output of `meter_reading.py`, which runs on the director.

use serde::Deserialize;

/// The program that reads the meter.
pub(super) const READ_METER: &str = include_str!("meter_reading.py");

/// PTDaemon's report. Its texts come from another machine.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum MeterReading {
    /// PTDaemon answers.
    Read {
        /// Its answer to `Identify`: the meter's name, numbers, and `version=`.
        identity: String,
        /// The lines of samples in its log.
        samples: Vec<String>,
    },
    /// PTDaemon does not answer.
    Failed {
        /// The reason.
        error: String,
    },
}

/// The mean of some samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct IdleLoad {
    /// Watts.
    pub watts: f64,
    /// Effective volts; negative on a meter with several channels.
    pub volts: f64,
    /// Effective amperes; negative on a meter with several channels.
    pub amps: f64,
    /// The power factor; negative on a meter with several channels.
    pub power_factor: f64,
}

impl IdleLoad {
    /// Averages lines `Time,<time>,Watts,<w>,Volts,<v>,Amps,<a>,PF,<pf>,...`. Returns `None` when no line is one.
    pub(crate) fn of(samples: &[String]) -> Option<Self> {
        let read = |line: &String| -> Option<[f64; 4]> {
            let fields: Vec<&str> = line.split(',').collect();
            let names = [(2, "Watts"), (4, "Volts"), (6, "Amps"), (8, "PF")];
            let mut values = [0.0; 4];
            for (value, (at, name)) in values.iter_mut().zip(names) {
                let number = fields.get(at + 1).filter(|_| fields.get(at) == Some(&name))?;
                *value = number
                    .trim()
                    .parse()
                    .ok()
                    .filter(|number: &f64| number.is_finite())?;
            }
            Some(values)
        };
        let rows: Vec<[f64; 4]> = samples.iter().filter_map(read).collect();
        let count = rows.len() as f64;
        let mean = |at: usize| rows.iter().filter_map(|row| row.get(at)).sum::<f64>() / count;
        (count > 0.0).then(|| Self {
            watts: mean(0),
            volts: mean(1),
            amps: mean(2),
            power_factor: mean(3),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_averaged_and_other_lines_ignored() {
        let line = |watts: f64| {
            format!(
                "Time,07-30-2022 04:40:04.430,Watts,{watts},Volts,230.0,Amps,0.100000,PF,0.5,Mark,preflight"
            )
        };
        let samples = [
            line(11.0),
            line(13.0),
            "Time,x,Watts,nan,Volts".to_owned(),
            String::new(),
        ];
        let load = IdleLoad::of(&samples).unwrap();
        assert_eq!((load.watts, load.volts, load.power_factor), (12.0, 230.0, 0.5));
        assert_eq!(IdleLoad::of(&samples[2..]), None);
    }

    #[test]
    fn both_answers_read() {
        let read: MeterReading =
            serde_json::from_str(r#"{"identity": "YokogawaWT310E,1", "samples": []}"#).unwrap();
        assert!(matches!(read, MeterReading::Read { .. }));
        let failed: MeterReading = serde_json::from_str(r#"{"error": "off"}"#).unwrap();
        assert!(matches!(failed, MeterReading::Failed { .. }));
    }
}
