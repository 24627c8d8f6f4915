//! What the simulated meter shows: watts of each part of a session, with noise.

use regatta_random::SplitMix64;

/// The measurement that a mark of the official server names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkedPart {
    /// `..._ranging`
    Ranging,
    /// `..._testing`
    Testing,
    /// Any other mark.
    Other,
}

impl MarkedPart {
    pub(super) fn of_mark(mark: &str) -> Self {
        match mark.rsplit('_').next() {
            Some("ranging") => Self::Ranging,
            Some("testing") => Self::Testing,
            _ => Self::Other,
        }
    }
}

/// The figures of the simulated meter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedLoad {
    /// Watts outside of ranging and testing.
    pub idle_watts: f64,
    /// Watts during ranging.
    pub ranging_watts: f64,
    /// Watts during testing.
    pub testing_watts: f64,
    /// The largest deviation of a sample, as a share of its watts.
    pub noise: f64,
    /// Effective volts.
    pub volts: f64,
    pub power_factor: f64,
}

/// One sample of one channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub(super) watts: f64,
    pub(super) volts: f64,
    pub(super) amps: f64,
    pub(super) power_factor: f64,
}

impl SimulatedLoad {
    /// Returns sample `number` of a measurement on one of `channels` equal channels. The same number gives the same sample.
    pub(super) fn sample(&self, part: MarkedPart, number: u64, channels: usize) -> Sample {
        let watts = match part {
            MarkedPart::Ranging => self.ranging_watts,
            MarkedPart::Testing => self.testing_watts,
            MarkedPart::Other => self.idle_watts,
        };
        let noise = SplitMix64::sequence(0, number).factor(self.noise);
        let watts = watts * noise / channels as f64;
        Sample {
            watts,
            volts: self.volts,
            amps: watts / (self.volts * self.power_factor),
            power_factor: self.power_factor,
        }
    }
}

impl Sample {
    /// The fields of PTDaemon's lines.
    pub(super) fn fields(&self) -> String {
        format!(
            "Watts,{:.6},Volts,{:.6},Amps,{:.6},PF,{:.6}",
            self.watts, self.volts, self.amps, self.power_factor
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stay_within_the_noise_and_have_its_mean() {
        let load = SimulatedLoad {
            idle_watts: 5.0,
            ranging_watts: 100.0,
            testing_watts: 90.0,
            noise: 0.05,
            volts: 230.0,
            power_factor: 0.9,
        };
        let watts: Vec<f64> = (0..1000)
            .map(|number| load.sample(MarkedPart::Ranging, number, 1).watts)
            .collect();
        assert!(watts.iter().all(|watts| (95.0..=105.0).contains(watts)));
        let mean = watts.iter().sum::<f64>() / 1000.0;
        assert!((99.5..100.5).contains(&mean), "{mean}");
        let halves = load.sample(MarkedPart::Testing, 7, 2);
        assert_eq!(halves.watts * 2.0, load.sample(MarkedPart::Testing, 7, 1).watts);
        assert_eq!(
            MarkedPart::of_mark("2026-01-01_00-00-00_lab_testing"),
            MarkedPart::Testing
        );
        assert_eq!(MarkedPart::of_mark("x"), MarkedPart::Other);
    }
}
