//! Documents of one session that contradict each other, which no official check compares: the meter of the configuration and that of PTDaemon's
//! answers, the samples and the run that they are marked with, the samples and their copies in PTDaemon's log.
//!
//! Not every version of PTDaemon copies its samples to its log. Where there is no copy, there is nothing to compare.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    ptd_log,
    samples::{MAX_SAMPLES, microseconds},
    session::{Session, list},
    session_fault::SessionFault,
};
use crate::check::lines::Lines;

/// The longest line of a sample that is read, in bytes.
const MAX_LINE: usize = 1 << 16;
/// The largest difference between a sample and its copy in watts: both may be printed with different digits.
const MAX_DIFFERENCE: f64 = 0.001;

/// The runs of a session: the directory, and the end of the mark of its samples.
const RUNS: [(&str, &str); 2] = [("ranging", "ranging"), ("run_1", "testing")];

/// A sample of `spl.txt`, `Time,<time>,Watts,<watts>,...,Mark,<mark>,...`, or its copy.
struct Sample<'a> {
    micros: i64,
    watts: f64,
    mark: Option<&'a str>,
}

impl<'a> Sample<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut fields = text.trim_end().split(',');
        if fields.next() != Some("Time") {
            return None;
        }
        let micros = microseconds(fields.next()?)?;
        if fields.next() != Some("Watts") {
            return None;
        }
        let watts = fields.next()?.trim().parse().ok()?;
        let mark = fields.find(|field| *field == "Mark").and_then(|_| fields.next());
        Some(Self { micros, watts, mark })
    }
}

/// Returns the contradictions of a session.
pub(super) fn faults(session: &Session<'_>) -> Vec<SessionFault> {
    let mut found: Vec<SessionFault> = meter(session).into_iter().collect();
    let copies = copies(session);
    for (run, phase) in RUNS {
        found.extend(samples(session, run, phase, &copies));
    }
    found
}

/// Compares the meter that PTDaemon says it reads with the one in the server's configuration.
fn meter(session: &Session<'_>) -> Option<SessionFault> {
    let messages = list(&session.server, "ptd_messages").ok()?;
    let configured: BTreeSet<i64> = match session.server.get("ptd_config")? {
        Value::Array(analyzers) => analyzers.iter().filter_map(device_type).collect(),
        analyzer => device_type(analyzer).into_iter().collect(),
    };
    let identities = messages
        .iter()
        .filter(|message| message.get("cmd").is_some_and(|command| command == "Identify"))
        .filter_map(|message| message.get("reply")?.as_str()?.split(',').next());
    let (name, number) = identities
        .filter_map(|name| Some((name, *session.rules.meters.get(name)?)))
        .find(|(_, number)| !configured.contains(number))?;
    let configured: Vec<String> = configured.iter().map(i64::to_string).collect();
    Some(SessionFault {
        path: session.at("power/server.json"),
        line: None,
        text: format!(
            "PTDaemon read a {name}, which is device type {number}, and the configuration has {}",
            configured.join(", ")
        ),
    })
}

fn device_type(analyzer: &Value) -> Option<i64> {
    analyzer.get("device_type")?.as_i64()
}

/// Returns the watts of the samples that PTDaemon's log has copies of, by their time.
fn copies(session: &Session<'_>) -> BTreeMap<i64, f64> {
    let Ok(log) = session.ptd_log() else {
        return BTreeMap::new();
    };
    log.lines()
        .filter_map(|line| {
            let at = line.find("Time,")?;
            Sample::parse(line.get(at..)?)
        })
        .map(|sample| (sample.micros, sample.watts))
        .take(MAX_SAMPLES)
        .collect()
}

/// Compares the samples in a run's window with their mark and their copies. Faults of form are found elsewhere.
fn samples(
    session: &Session<'_>,
    run: &str,
    phase: &str,
    copies: &BTreeMap<i64, f64>,
) -> Option<SessionFault> {
    let window = session.window(run).ok()?;
    let (begin, end) = (microseconds(&window.begin)?, microseconds(&window.end)?);
    let name = session.server.get("session_name").and_then(Value::as_str);
    let mark = name.map(|name| format!("{name}_{phase}"));
    let path = session.at(&format!("{run}/spl.txt"));
    let mut lines = Lines::new(session.tree.open(&path).ok()?, MAX_LINE);
    let mut seen = BTreeSet::new();
    let (mut marked, mut changed, mut powerless) = (0, 0, 0);
    while let Ok(Some(line)) = lines.next()
        && seen.len() < MAX_SAMPLES
    {
        let Some(sample) = std::str::from_utf8(line).ok().and_then(Sample::parse) else {
            continue;
        };
        if sample.micros <= begin || sample.micros >= end {
            continue;
        }
        seen.insert(sample.micros);
        marked += u64::from(mark.is_some() && sample.mark.is_some() && sample.mark != mark.as_deref());
        let copy = copies.get(&sample.micros);
        // The comparison is false for NaN.
        let is_copied = |copy: &f64| (copy - sample.watts).abs() <= MAX_DIFFERENCE;
        changed +=
            u64::from(copy.is_some_and(|copy| !(is_copied(copy) || copy.is_nan() && sample.watts.is_nan())));
        // Ranging sets ranges, after which the meter has no value for a moment.
        let has_power = sample.watts.is_finite() && sample.watts > 0.0;
        powerless += u64::from(phase == "testing" && !has_power);
    }
    let in_window = copies.range(begin + 1..end.max(begin + 1));
    let missing = in_window.filter(|(time, _)| !seen.contains(time)).count();
    let text = if changed > 0 {
        format!("{changed} samples differ from their copies in {}", ptd_log::FILE)
    } else if missing > 0 {
        format!(
            "{missing} samples are missing that {} has copies of",
            ptd_log::FILE
        )
    } else if marked > 0 {
        format!(
            "{marked} samples of the run's window have another mark than {}",
            mark.unwrap_or_default()
        )
    } else if powerless > 0 {
        format!("{powerless} samples of the run's window are not above 0 W")
    } else {
        return None;
    };
    Some(SessionFault {
        path,
        line: None,
        text,
    })
}
