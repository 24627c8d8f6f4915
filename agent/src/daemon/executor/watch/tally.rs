//! Summary of the samples: their number, the mean power while LoadGen ran, and the findings. Each finding is reported
//! once, with its start and its number of samples.

use std::{collections::BTreeMap, time::Instant};

use regatta_types::documents::{RunPhase, StateFinding, Telemetry};

use super::{column::Kind, sampler::Sample};

/// Tolerance for locked clocks, which may read slightly low because they are measured over a short time.
const LOCK_TOLERANCE_PERCENT: i64 = 2;

/// The mean of power samples.
#[derive(Debug, Default)]
struct MeanPower {
    milliwatts: u64,
    samples: u64,
}

impl MeanPower {
    const fn add(&mut self, milliwatts: u64) {
        self.milliwatts = self.milliwatts.saturating_add(milliwatts);
        self.samples = self.samples.saturating_add(1);
    }

    const fn milliwatts(&self) -> Option<u64> {
        self.milliwatts.checked_div(self.samples)
    }
}

/// The running totals of a run's samples.
#[derive(Debug, Default)]
pub(super) struct Tally {
    telemetry: Telemetry,
    window: Option<Instant>,
    rails: MeanPower,
    wall: MeanPower,
    /// Each counter's value at the start of the measurement window.
    levels: BTreeMap<String, i64>,
    findings: Vec<(String, StateFinding)>,
}

impl Tally {
    /// Records that the run has entered a phase.
    pub(super) fn enter(&mut self, phase: RunPhase, now: Instant) {
        match (phase, self.window) {
            (RunPhase::Running, _) => self.window = Some(now),
            (_, Some(begin)) => {
                let length = now.duration_since(begin).as_millis();
                self.telemetry.window_ms = u64::try_from(length).unwrap_or(u64::MAX);
                self.window = None;
            }
            (_, None) => {}
        }
    }

    /// Records a second without a sample.
    pub(super) const fn miss(&mut self) {
        self.telemetry.gaps = self.telemetry.gaps.saturating_add(1);
    }

    /// Adds a sample. `is_written` states whether it was written to the file.
    pub(super) fn count(
        &mut self,
        seconds: f64,
        phase: RunPhase,
        meanings: &[(String, Kind)],
        sample: &Sample,
        is_written: bool,
    ) {
        if is_written {
            self.telemetry.samples = self.telemetry.samples.saturating_add(1);
        } else {
            self.miss();
        }
        let is_window = phase == RunPhase::Running;
        let mut rails = Vec::new();
        let mut power = 0_u64;
        for ((name, kind), cell) in meanings.iter().zip(&sample.cells) {
            let Some(value) = *cell else { continue };
            match *kind {
                Kind::Rise => self.watch_rise(seconds, name, value, is_window),
                _ if !is_window => {}
                Kind::Temperature => {
                    let hottest = self.telemetry.hottest_millicelsius.unwrap_or(i64::MIN);
                    self.telemetry.hottest_millicelsius = Some(hottest.max(value));
                }
                Kind::Rail(true) => {
                    rails.push(name.trim_start_matches("milliwatts:").to_owned());
                    power = power.saturating_add(u64::try_from(value).unwrap_or(0));
                }
                Kind::Wall => self.wall.add(u64::try_from(value).unwrap_or(0)),
                Kind::Locked(lock) if value * 100 < lock * (100 - LOCK_TOLERANCE_PERCENT) => {
                    let what = format!("{name} was {value}, below its lock of {lock}");
                    self.find(seconds, &format!("below:{name}"), what);
                }
                Kind::Plain | Kind::Rail(false) | Kind::Locked(_) => {}
            }
        }
        if is_window {
            self.telemetry.window_samples = self.telemetry.window_samples.saturating_add(1);
            for what in &sample.moved {
                self.find(seconds, what, what.clone());
            }
            self.add_power(rails, power);
        }
    }

    /// Adds to the mean power. A sample that does not have a rail is skipped, because a mean over different rails is meaningless.
    fn add_power(&mut self, rails: Vec<String>, power: u64) {
        if self.telemetry.rails.is_empty() {
            self.telemetry.rails.clone_from(&rails);
        }
        if !rails.is_empty() && rails == self.telemetry.rails {
            self.rails.add(power);
        }
    }

    fn watch_rise(&mut self, seconds: f64, name: &str, value: i64, is_window: bool) {
        let before = *self.levels.entry(name.to_owned()).or_insert(value);
        if !is_window {
            self.levels.insert(name.to_owned(), value);
        } else if value > before {
            let what = match name.split_once(':') {
                Some(("over_current_events", which)) => {
                    format!("the supply was too weak: {which} counted events")
                }
                _ => format!("the board slowed itself down: {name} rose above {before}"),
            };
            self.find(seconds, name, what);
        }
    }

    fn find(&mut self, seconds: f64, key: &str, what: String) {
        match self.findings.iter_mut().find(|(known, _)| known == key) {
            Some((_, finding)) => finding.samples = finding.samples.saturating_add(1),
            None => {
                let finding = StateFinding {
                    seconds: (seconds * 1_000.0).round() / 1_000.0,
                    what,
                    samples: 1,
                };
                self.findings.push((key.to_owned(), finding));
            }
        }
    }

    /// Returns the telemetry summary and the findings.
    pub(super) fn result(self) -> (Telemetry, Vec<StateFinding>) {
        let milliwatts = self.rails.milliwatts();
        let telemetry = Telemetry {
            milliwatts,
            wall_milliwatts: self.wall.milliwatts(),
            millijoules: milliwatts.map(|mean| mean.saturating_mul(self.telemetry.window_ms) / 1_000),
            ..self.telemetry
        };
        (
            telemetry,
            self.findings.into_iter().map(|(_, finding)| finding).collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn count(tally: &mut Tally, seconds: f64, phase: RunPhase, columns: &[(&str, Kind, Option<i64>)]) {
        let sample = Sample {
            monotonic_ns: 0,
            cells: columns.iter().map(|(_, _, cell)| *cell).collect(),
            moved: Vec::new(),
        };
        let meanings: Vec<(String, Kind)> = columns
            .iter()
            .map(|(name, kind, _)| ((*name).to_owned(), *kind))
            .collect();
        tally.count(seconds, phase, &meanings, &sample, true);
    }

    #[test]
    fn energy_is_mean_power_times_the_windows_length() {
        let mut tally = Tally::default();
        let power = |milliwatts| [("milliwatts:VDD_IN", Kind::Rail(true), milliwatts)];
        count(&mut tally, 0.0, RunPhase::Ready, &power(Some(90_000)));
        let begin = Instant::now();
        tally.enter(RunPhase::Running, begin);
        for milliwatts in [Some(10_000), None, Some(20_000)] {
            count(&mut tally, 1.0, RunPhase::Running, &power(milliwatts));
        }
        tally.enter(RunPhase::Draining, begin + Duration::from_secs(4));
        let (telemetry, findings) = tally.result();
        assert_eq!(
            (telemetry.milliwatts, telemetry.millijoules),
            (Some(15_000), Some(60_000))
        );
        assert_eq!(
            (telemetry.samples, telemetry.window_samples, telemetry.window_ms),
            (4, 3, 4_000)
        );
        assert_eq!(telemetry.rails, ["VDD_IN"]);
        assert!(findings.is_empty());
    }

    #[test]
    fn throttling_over_current_and_clocks_below_their_lock_are_found_once_each() {
        let mut tally = Tally::default();
        let board = |cooling, events, clock| {
            [
                ("cooling:cpu-throttle-alert:2", Kind::Rise, Some(cooling)),
                ("over_current_events:oc3", Kind::Rise, Some(events)),
                ("gpu_hz", Kind::Locked(1_000), Some(clock)),
            ]
        };
        // Events before the measurement window do not count.
        count(&mut tally, 0.0, RunPhase::Ready, &board(0, 17, 10));
        tally.enter(RunPhase::Running, Instant::now());
        count(&mut tally, 1.0, RunPhase::Running, &board(0, 17, 985));
        count(&mut tally, 2.0, RunPhase::Running, &board(1, 19, 612));
        count(&mut tally, 3.0, RunPhase::Running, &board(1, 20, 1_000));
        let (_, findings) = tally.result();
        let found: Vec<(f64, &str, u64)> = findings
            .iter()
            .map(|finding| (finding.seconds, finding.what.as_str(), finding.samples))
            .collect();
        assert_eq!(
            found,
            [
                (
                    2.0,
                    "the board slowed itself down: cooling:cpu-throttle-alert:2 rose above 0",
                    2
                ),
                (2.0, "the supply was too weak: oc3 counted events", 2),
                (2.0, "gpu_hz was 612, below its lock of 1000", 1),
            ]
        );
    }
}
