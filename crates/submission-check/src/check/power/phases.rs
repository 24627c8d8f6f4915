//! Checks times and power: the clocks of client and server, LoadGen's window within the phases, and both runs compared.

use regatta_catalogue::round::DurationRule;
use serde_json::{Map, Value};

use super::{
    check_failure::CheckFailure,
    samples::{self, Reading},
    session::{CheckResult, LoadGenWindow, Session, SessionFinding},
};
use crate::check::hashed::Hashed;

/// The official checker accepts a clock that is off by daylight saving time, in seconds.
const SUMMER_TIME: f64 = 3600.0;

/// Checks the times of a session.
pub(super) fn check(session: &Session<'_>) -> CheckResult {
    let mut windows = Vec::new();
    for (phase, run) in [("ranging", "ranging"), ("testing", "run_1")] {
        let (client, server) = (times(&session.client, phase)?, times(&session.server, phase)?);
        clocks(session, phase, &client, &server)?;
        windows.push((phase, run, client, session.window(run)?));
    }
    let mut seconds = Vec::new();
    for (phase, _, times, window) in &windows {
        let stamp =
            |text: &str| samples::unix_seconds(text).ok_or_else(|| format!("`{text}` is not a time stamp"));
        let (begin, end) = (stamp(&window.begin)?, stamp(&window.end)?);
        for (word, stamp) in [("begins", begin), ("ends", end)] {
            within(times, phase, word, stamp)?;
        }
        seconds.push(end - begin);
    }
    if let [ranging, testing] = *seconds {
        durations(session.rules.duration, ranging, testing)?;
    }
    let Some(most) = session.rules.power_drop_percent else {
        return Ok(());
    };
    let mut watts = Vec::new();
    for (_, run, _, window) in &windows {
        watts.push(mean_power(session, run, window)?);
    }
    match *watts {
        [0.0, _] => Err("the ranging run drew no power".into()),
        [ranging, testing] => {
            let change = rounded((testing / ranging - 1.0) * 100.0, 2);
            if change > -most {
                Ok(())
            } else {
                let text = format!(
                    "the testing run drew {testing} W, {change} % of the ranging run's {ranging} W: more than {most} % less"
                );
                Err(text.into())
            }
        }
        _ => Ok(()),
    }
}

/// Returns a phase whose run has the right times only an hour earlier, which the official program accepts: its log is not in UTC.
pub(super) fn an_hour_off(session: &Session<'_>) -> Option<&'static str> {
    [("ranging", "ranging"), ("testing", "run_1")]
        .into_iter()
        .find_map(|(phase, run)| {
            let times = times(&session.client, phase).ok()?;
            let window = session.window(run).ok()?;
            let begin = samples::unix_seconds(&window.begin)?;
            let (from, to) = (*times.get(1)?, *times.get(2)?);
            let is_inside = |time: f64| from < time && time < to;
            (!is_inside(begin) && is_inside(begin - SUMMER_TIME)).then_some(phase)
        })
}

/// Returns the wall-clock times of a phase's checkpoints.
fn times(description: &Map<String, Value>, phase: &str) -> Result<Vec<f64>, CheckFailure> {
    let list = description
        .get("phases")
        .and_then(|phases| phases.get(phase))
        .and_then(Value::as_array);
    let list = list.ok_or_else(|| format!("phases has no list {phase}"))?;
    list.iter()
        .map(|point| {
            let time = point.get(0).and_then(Value::as_f64);
            time.ok_or_else(|| format!("a time in phases.{phase} is not a number").into())
        })
        .collect()
}

fn clocks(session: &Session<'_>, phase: &str, client: &[f64], server: &[f64]) -> CheckResult {
    if client.len() != server.len() {
        return Err(format!("client and server differ in the number of {phase} phases").into());
    }
    let most = f64::from(session.rules.clock_tolerance_ms) / 1000.0;
    for (number, (client, server)) in (1..).zip(client.iter().zip(server)) {
        let apart = (client - server).abs();
        // The comparison is false for NaN, so NaN fails.
        let close = apart <= most;
        if !close {
            let text = format!(
                "the clocks are {:.0} ms apart in phase {number} of {phase}, {:.0} ms are allowed",
                apart * 1e3,
                most * 1e3
            );
            return Err(text.into());
        }
    }
    Ok(())
}

fn within(times: &[f64], phase: &str, word: &str, stamp: f64) -> CheckResult {
    let (Some(&from), Some(&to)) = (times.get(1), times.get(2)) else {
        return Err(format!("{phase} has too few phases").into());
    };
    let inside = |stamp: f64| from < stamp && stamp < to;
    if inside(stamp) || inside(stamp - SUMMER_TIME) {
        Ok(())
    } else {
        Err(format!("LoadGen's run {word} outside of the {phase} phase").into())
    }
}

fn durations(rule: DurationRule, ranging: f64, testing: f64) -> CheckResult {
    match rule {
        DurationRule::DiffersBelow(limit) => {
            let share = (ranging - testing).abs() / ranging.max(testing);
            if share < limit {
                Ok(())
            } else {
                Err(format!("the runs took {ranging:.2} s and {testing:.2} s, {limit} or more apart").into())
            }
        }
        DurationRule::ShorterAtMost(limit) => {
            if (ranging - testing) / ranging > limit {
                let text = format!("the testing run took {testing:.2} s, the ranging run {ranging:.2} s");
                Err(SessionFinding::Warning(text))
            } else {
                Ok(())
            }
        }
    }
}

/// Returns the mean of a run's samples in watts, or -1 if there are none.
fn mean_power(session: &Session<'_>, run: &str, window: &LoadGenWindow) -> Result<f64, CheckFailure> {
    let reading = Reading {
        every_line: session.rules.every_sample_line,
        zeros: false,
        factor: true,
    };
    let name = format!("{run}/spl.txt");
    let path = session.at(&name);
    let fault = |error| format!("{path}: {error}");
    let mut file = Hashed::open(session.tree, &path).map_err(fault)?;
    let mean = samples::mean_of(&mut file, &path, window.as_run_window(), reading)?;
    session.keep_sha1(&name, &file.sha1().map_err(fault)?);
    Ok(rounded(mean.map_or(-1.0, |mean| mean.watts), 5))
}

/// Rounds to `places` decimal places, as Python does.
fn rounded(value: f64, places: usize) -> f64 {
    format!("{value:.places$}").parse().unwrap_or(value)
}
