//! Reads the power samples (`spl.txt`) in the run's time window, as PTDaemon writes them and the checkers read them.
//!
//! It does not check whether the measurement followed the rules.

use std::io::Read;

use super::CheckFailure;
use crate::{
    check::{lines::Lines, run_log::RunLog},
    tree::Tree,
};

/// The longest line that is read, in bytes. PTDaemon's lines are shorter.
const MAX_LINE: usize = 1 << 16;

/// The lines and samples that count, which depends on the round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    /// Whether lines that do not begin with `Time` are read too. They must then be samples.
    pub(crate) every_line: bool,
    /// Whether samples of 0 W and less count.
    pub(crate) zeros: bool,
    /// Whether each sample must have a power factor.
    pub(crate) factor: bool,
}

/// The length of a timestamp, for example `08-03-2022 08:11:56.642`.
const PLAIN: usize = 23;

/// The number of fields that `nth` skips between the watts and the power factor.
const FACTOR_AFTER_WATTS: usize = 5;

/// The longest accepted gap between samples, in seconds. PTDaemon samples once per second and may miss some samples.
const MAX_GAP: f64 = 15.0;

/// LoadGen's timestamps of the begin and end of a run, `month-day-year hour:minute:second.fraction`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunWindow<'a> {
    pub(crate) begin: &'a str,
    pub(crate) end: &'a str,
}

impl<'a> RunWindow<'a> {
    /// Returns the window of a run's log, or `None` if a timestamp is missing.
    pub(crate) fn of_log(log: &'a RunLog) -> Option<Self> {
        Some(Self {
            begin: log.text("power_begin")?,
            end: log.text("power_end")?,
        })
    }
}

/// The mean power in a time window, and properties of its samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MeanPower {
    /// The mean power in watts.
    pub(crate) watts: f64,
    /// The length of the window in seconds.
    pub(crate) seconds: f64,
    /// The number of samples in the window.
    pub(crate) samples: u64,
    /// The longest time in the window without a sample, in seconds.
    pub(crate) longest_gap: f64,
    /// Whether a sample is older than the previous one.
    pub(crate) disordered: bool,
}

/// One sample of the power.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerSample {
    /// The time in seconds since 1970, as the director's clock had it.
    pub seconds: f64,
    /// The power in watts. PTDaemon writes -1 where it has none.
    pub watts: f64,
}

/// The largest number of samples that are read: two days of them.
pub(super) const MAX_SAMPLES: usize = 172_800;

/// Returns the samples of a file in their order. Malformed lines are skipped. An unreadable file has no samples.
pub(super) fn all(tree: &Tree, path: &str) -> Vec<PowerSample> {
    let mut found = Vec::new();
    let Ok(file) = tree.open(path) else {
        return found;
    };
    let mut lines = Lines::new(file, MAX_LINE);
    while let Ok(Some(line)) = lines.next()
        && found.len() < MAX_SAMPLES
    {
        found.extend(sample(line));
    }
    found
}

/// Parses a line `Time,<time>,Watts,<watts>,...`.
fn sample(line: &[u8]) -> Option<PowerSample> {
    let text = std::str::from_utf8(line).ok()?;
    let mut fields = text.split(',');
    let is_sample = fields.next() == Some("Time");
    let time = fields.next().filter(|_| is_sample)?;
    let watts: f64 = fields.nth(1)?.trim().parse().ok()?;
    Some(PowerSample {
        seconds: unix_seconds(time)?,
        watts,
    })
    .filter(|sample| sample.watts.is_finite())
}

/// The least share of the seconds of a ranging run that have a sample: while ranges are set, the meter has no value.
pub(super) const MIN_RANGING_SHARE: f64 = 0.5;
/// The least share of the seconds of a testing run that have a sample. Every published session has all of them.
pub(super) const MIN_TESTING_SHARE: f64 = 0.9;

/// Checks that PTDaemon's samples cover the complete window in order, about one per second; `least` is the share of its seconds that have
/// one. Returns the problem, if there is one.
pub(super) fn finding(mean: Option<MeanPower>, least: f64) -> Option<String> {
    match mean {
        None => Some("has no samples in the run's window".to_owned()),
        Some(mean)
            if !(mean.seconds * least - 2.0..mean.seconds * 1.1 + 2.0).contains(&(mean.samples as f64)) =>
        {
            let (samples, seconds) = (mean.samples, mean.seconds);
            Some(format!("{samples} samples in a window of {seconds:.0} s"))
        }
        Some(mean) if mean.longest_gap > MAX_GAP => {
            let gap = mean.longest_gap;
            Some(format!("{gap:.0} s of the run's window are without a sample"))
        }
        Some(mean) if mean.disordered => Some("a sample is older than the one before it".to_owned()),
        Some(_) => None,
    }
}

/// Averages the samples of `path` strictly between two LoadGen timestamps. Returns `None` if there are none.
pub(crate) fn mean(
    tree: &Tree,
    path: &str,
    window: RunWindow<'_>,
    reading: Reading,
) -> Result<Option<MeanPower>, CheckFailure> {
    let file = tree.open(path).map_err(|error| format!("{path}: {error}"))?;
    mean_of(file, path, window, reading)
}

/// Averages the samples of `input` like `mean`. Reads `input` to its end unless an error occurs.
pub(crate) fn mean_of(
    input: impl Read,
    path: &str,
    window: RunWindow<'_>,
    reading: Reading,
) -> Result<Option<MeanPower>, CheckFailure> {
    let stamp = |text: &str| microseconds(text).ok_or_else(|| format!("`{text}` is not a power time stamp"));
    let (begin, end) = (stamp(window.begin)?, stamp(window.end)?);
    let mut lines = Lines::new(input, MAX_LINE);
    let (mut sum, mut samples, mut number) = (0.0, 0_u64, 0_u64);
    let (mut last, mut longest_gap, mut disordered) = (begin, 0, false);
    while let Some(line) = lines.next().map_err(|error| format!("{path}: {error}"))? {
        number += 1;
        let fault = || format!("{path}, line {number}: not a power sample");
        let text = std::str::from_utf8(line).map_err(|_| fault())?;
        if !reading.every_line && !text.starts_with("Time") {
            continue;
        }
        let mut fields = text.split(',');
        let time = fields.nth(1).and_then(microseconds).ok_or_else(fault)?;
        if time <= begin || time >= end {
            continue;
        }
        let watts: f64 = fields
            .nth(1)
            .and_then(|field| field.trim().parse().ok())
            .ok_or_else(fault)?;
        if reading.factor {
            let factor = fields.nth(FACTOR_AFTER_WATTS);
            let factor = factor.and_then(|field| field.trim().parse::<f64>().ok());
            factor.ok_or_else(fault)?;
        }
        if watts > 0.0 || reading.zeros {
            sum += watts;
            samples += 1;
            disordered |= time < last;
            longest_gap = longest_gap.max(time - last);
            last = time;
        }
    }
    Ok((samples > 0).then(|| MeanPower {
        watts: sum / samples as f64,
        seconds: (end - begin) as f64 / 1e6,
        samples,
        longest_gap: longest_gap.max(end - last) as f64 / 1e6,
        disordered,
    }))
}

/// Converts `month-day-year hour:minute:second.fraction` to microseconds since the year 0.
pub(crate) fn microseconds(text: &str) -> Option<i64> {
    match <&[u8; PLAIN]>::try_from(text.as_bytes()) {
        Ok(plain) => plain_microseconds(plain).or_else(|| any_microseconds(text)),
        Err(_) => any_microseconds(text),
    }
}

/// Converts a timestamp with a fixed number of digits, which nearly all have; returns `None` for others.
fn plain_microseconds(text: &[u8; PLAIN]) -> Option<i64> {
    let odd_mark = |(&byte, &mark): (&u8, &u8)| mark != b'd' && byte != mark;
    if text.iter().zip(b"dd-dd-dddd dd:dd:dd.ddd").any(odd_mark) {
        return None;
    }
    let mut odd = false;
    let mut number = |from: usize, to: usize| {
        text[from..to].iter().fold(0, |number, byte| {
            let digit = byte.wrapping_sub(b'0');
            odd |= digit > 9;
            number * 10 + i64::from(digit)
        })
    };
    let (month, day, year) = (number(0, 2), number(3, 5), number(6, 10));
    let (hour, minute, second) = (number(11, 13), number(14, 16), number(17, 19));
    let thousandths = number(20, 23);
    let stamp = Stamp {
        year,
        month,
        day,
        hour,
        minute,
        second,
        micros: thousandths * 1000,
    };
    stamp.microseconds().filter(|_| !odd)
}

fn any_microseconds(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(' ')?;
    let mut date = date.split('-').map(|part| part.parse::<i64>().ok());
    let (month, day, year) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':');
    let (hour, minute) = (
        time.next()?.parse::<i64>().ok()?,
        time.next()?.parse::<i64>().ok()?,
    );
    let (second, fraction) = time.next()?.split_once('.')?;
    let second: i64 = second.parse().ok()?;
    let digits = fraction.len();
    let valid = (1..=6).contains(&digits) && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let fraction: i64 = fraction.parse().ok().filter(|_| valid)?;
    let stamp = Stamp {
        year,
        month,
        day,
        hour,
        minute,
        second,
        micros: fraction * 10_i64.pow(u32::try_from(6 - digits).ok()?),
    };
    stamp.microseconds()
}

/// The numbers of a timestamp.
struct Stamp {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
}

impl Stamp {
    /// Returns the microseconds since the year 0, or `None` if a number is out of range.
    fn microseconds(&self) -> Option<i64> {
        let Self {
            year,
            month,
            day,
            hour,
            minute,
            second,
            micros,
        } = *self;
        let valid = (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && (1..=9999).contains(&year)
            && (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..62).contains(&second);
        let seconds = || ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
        valid.then(|| seconds() * 1_000_000 + micros)
    }
}

/// Converts a timestamp to seconds since 1970, like those of the client's and server's phases. It is treated as UTC.
pub(super) fn unix_seconds(text: &str) -> Option<f64> {
    microseconds(text).map(since_1970)
}

/// Converts a timestamp with a fixed number of digits to seconds since 1970; returns `None` for others.
pub(super) fn plain_unix_seconds(text: &str) -> Option<f64> {
    let text = text.as_bytes().try_into().ok()?;
    plain_microseconds(text).map(since_1970)
}

/// Converts microseconds since the year 0 to seconds since 1970.
fn since_1970(microseconds: i64) -> f64 {
    (microseconds - days(1970, 1, 1) * 86_400_000_000) as f64 / 1e6
}

/// Returns the days since 1 March of the year 0 in the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1
}

#[cfg(test)]
mod tests {
    use super::{microseconds, unix_seconds};

    #[test]
    fn stamps_count_on_over_midnight_and_leap_days() {
        let difference = |a, b| microseconds(b).unwrap() - microseconds(a).unwrap();
        assert_eq!(
            difference("12-31-2023 23:59:59.500", "01-01-2024 00:00:00.25"),
            750_000
        );
        assert_eq!(
            difference("02-28-2024 00:00:00.0", "03-01-2024 00:00:00.0"),
            2 * 86_400_000_000
        );
        assert_eq!(microseconds("2024-01-01 00:00:00.0"), None);
        let same = [
            "01-02-2024 03:04:05.060",
            "1-2-2024 3:4:5.06",
            "01-02-2024 03:04:5.06000",
        ];
        assert!(
            same.iter()
                .all(|text| microseconds(text) == microseconds(same[0]))
        );
        for wrong in [
            "13-02-2024 03:04:05.060",
            "01-02-2024 24:04:05.060",
            "01-02-2024 03:04:05.06x",
            "01-02-2024 03:04 05.060",
        ] {
            assert_eq!(microseconds(wrong), None, "{wrong}");
        }
        assert_eq!(unix_seconds("08-03-2022 08:11:56.642"), Some(1_659_514_316.642));
    }
}
