//! A run's row in words: subject, state, figure, markers, time. Every table and message about runs takes its words from here.
//!
//! Programs get the same facts from the commands' JSON documents.

use std::borrow::Cow;

use jiff::Timestamp;
use regatta_text::escape;
use regatta_types::{
    benchmark::BoundSide,
    documents::{AccuracyResult, RunLength, RunMarker, RunPhase, RunTask},
};

use super::{
    figure::{duration, value},
    time_zone::{zone_name, zoned},
    values,
};
use regatta_lab_runs::markers;
use regatta_lab_store::{RunRow, StatePreset};

/// Returns the device's name, or the end of its id when the store has no name.
pub fn device(row: &RunRow) -> String {
    match &row.device_name {
        Some(name) => escape(name).into_owned(),
        None => row.device.as_str().chars().take(8).collect(),
    }
}

/// Returns the audit's name, or the mode, or the task of a run that measures nothing.
pub fn mode(row: &RunRow) -> String {
    escape(row.audit().unwrap_or(task(row))).into_owned()
}

/// Returns the mode, or the task of a run that measures nothing.
pub const fn task(row: &RunRow) -> &'static str {
    match row.draft.spec.task {
        RunTask::Measurement => row.mode.as_str(),
        task => task.describe(),
    }
}

/// Returns the engine settings and the lines of user.conf that the user set, without the run's length: `batch_size=16 target_qps=500`.
pub fn settings(row: &RunRow) -> String {
    let spec = &row.draft.spec;
    let is_length = |key: &str| spec.length != RunLength::Full && key.ends_with(".min_duration");
    let conf = row.draft.user_settings.iter().filter(|(key, _)| !is_length(key));
    let conf = conf.map(|(key, value)| format!("{key}={value}"));
    let settings = spec.engine.settings.assignments().into_iter();
    escape(&settings.chain(conf).collect::<Vec<_>>().join(" ")).into_owned()
}

/// Returns [`settings`], and the device state if one was requested.
pub fn settings_and_state(row: &RunRow) -> String {
    let state = row
        .draft
        .spec
        .state
        .as_ref()
        .map(|state| escape(&state.name).into_owned());
    let parts = [settings(row), state.unwrap_or_default()];
    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the campaign that requested the run, with the variant of its settings: `night/large`.
pub fn campaign(row: &RunRow) -> Option<String> {
    let cell = row.campaign_cell.as_ref()?;
    Some(match &cell.variant {
        Some(variant) => format!("{}/{}", escape(&cell.campaign), escape(variant)),
        None => escape(&cell.campaign).into_owned(),
    })
}

/// Returns the state that the device was requested to have, or `as-is`.
pub fn device_state(row: &RunRow) -> &str {
    let state = row.draft.spec.state.as_ref();
    state.map_or(StatePreset::AsIs.as_str(), |state| state.name.as_str())
}

/// Returns the subject of the run: device, benchmark, scenario, mode and engine.
pub fn subject(row: &RunRow) -> String {
    format!(
        "{} {} {} {}, {}",
        device(row),
        escape(&row.benchmark),
        row.scenario,
        mode(row),
        row.draft.spec.engine.kind
    )
}

/// Returns the state in a word: the verdict of a finished run, otherwise the phase. LoadGen does not judge accuracy runs: their target does.
pub fn state(row: &RunRow) -> &'static str {
    let phase = row.shown_phase();
    let Some(outcome) = row.outcome.as_ref().filter(|_| phase == RunPhase::Done) else {
        return phase.as_str();
    };
    match (outcome.judgement.valid, &outcome.audit) {
        (Some(false), _) => "INVALID",
        (_, Some(audit)) if audit.passed => "TEST PASS",
        (_, Some(_)) => "TEST FAIL",
        (Some(true), None) => "VALID",
        (None, None) => match &outcome.accuracy {
            Some(found) if found.target.is_none() => phase.as_str(),
            Some(found) if found.is_reached() => "PASS",
            Some(_) => "FAIL",
            None => phase.as_str(),
        },
    }
}

/// Returns the figure that the round's checker reports. Without that figure, returns LoadGen's own with a remark: the percentile
/// of a latency that has no estimate, or `not judged` for a rate.
pub fn figure(row: &RunRow) -> Option<String> {
    let outcome = row.outcome.as_ref()?;
    if let Some(judged) = &outcome.judgement.figure {
        return Some(value(judged));
    }
    let metric = outcome.judgement.metric.as_ref()?;
    Some(match metric.name.strip_suffix(" latency") {
        Some(percentile) => format!("{} ({})", value(metric), escape(percentile)),
        None => format!("{} (not judged)", value(metric)),
    })
}

/// Returns the accuracy with its target, if there is one: `99.61 ≥ 99.00 %`, or `0.8617 ≥ 0.8531` for a fraction. The accuracy of an
/// incomplete log is not compared: `99.61 % (incomplete)`. An error has its target above: `0.0021 ≤ 0.0100`.
pub fn accuracy(row: &RunRow) -> Option<String> {
    let found = row.outcome.as_ref()?.accuracy.as_ref()?;
    if found.incomplete().is_some() {
        return Some(format!("{} (incomplete)", alone(found)));
    }
    let Some(target) = found.target else {
        return Some(alone(found));
    };
    let sign = match (found.side, found.side.admits(found.value, target)) {
        (BoundSide::AtLeast, true) => '≥',
        (BoundSide::AtLeast, false) => '<',
        (BoundSide::AtMost, true) => '≤',
        (BoundSide::AtMost, false) => '>',
    };
    let [value, target, unit] = with_target(found, target);
    Some(format!("{value} {sign} {target}{unit}"))
}

/// Returns an accuracy with its unit.
fn alone(found: &AccuracyResult) -> String {
    if found.is_percentage() {
        format!("{:.2} %", found.value)
    } else {
        format!("{:.4}", found.value)
    }
}

/// Returns an accuracy and its target with enough digits to differ, and their unit.
pub fn with_target(found: &AccuracyResult, target: f64) -> [String; 3] {
    // A fraction has two digits more before it is as exact as a percentage.
    let (least, unit) = if found.is_percentage() { (2, " %") } else { (4, "") };
    let [value, target] = values::distinct_from(least, found.value, target);
    [value, target, unit.to_owned()]
}

/// Returns the markers, the defects and the user's note of a run in words, separated by commas. A failed or aborted one, which has no
/// result, has only the note.
pub fn notes(row: &RunRow) -> String {
    let mut notes = Vec::new();
    if has_result(row) {
        notes.extend(markers(row).into_iter().map(RunMarker::as_str).map(Cow::from));
        notes.extend(defects(row).map(Cow::from));
    }
    notes.extend(user_note(row).map(Cow::from));
    notes.join(", ")
}

/// Returns the user's note in quotation marks.
fn user_note(row: &RunRow) -> Option<String> {
    row.note
        .as_ref()
        .map(|note| format!("\u{201c}{}\u{201d}", escape(note)))
}

/// Returns [`notes`]. For a failed or aborted run it returns the first words of the reason instead, up to `longest` characters;
/// `regatta runs show` prints all of it.
pub fn notes_or_reason(row: &RunRow, longest: usize) -> String {
    let reason = row.state.reason.as_deref().filter(|_| !has_result(row));
    let Some(reason) = reason else {
        return notes(row);
    };
    let reason = match reason.char_indices().nth(longest) {
        None => escape(reason).into_owned(),
        Some((end, _)) => {
            let shown = reason.get(..end).unwrap_or_default();
            // Whole words, unless the first one is longer.
            let shown = shown.rsplit_once(' ').map_or(shown, |(words, _)| words);
            format!("{} …", escape(shown))
        }
    };
    [Some(reason), user_note(row)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns the condition that a run waits for while it is prepared: its gate, or its assets.
pub fn waits_for(row: &RunRow) -> Option<Cow<'_, str>> {
    let reason = row.state.reason.as_deref();
    reason
        .filter(|_| row.state.phase == RunPhase::Preparing)
        .map(escape)
}

/// Returns the missing parts of a finished run's proof.
fn defects(row: &RunRow) -> impl Iterator<Item = &'static str> {
    let outcome = row.outcome.as_ref().filter(|_| row.state.phase == RunPhase::Done);
    let incomplete = outcome.is_some_and(|outcome| !outcome.complete);
    let unsigned = outcome.is_some_and(|outcome| outcome.signed != Some(true));
    [incomplete.then_some("incomplete"), unsigned.then_some("unsigned")]
        .into_iter()
        .flatten()
}

/// Returns the time at which LoadGen started: by the device's clock if it was synchronised, otherwise by the coordinator's.
pub fn start(row: &RunRow) -> Option<Timestamp> {
    let timing = row
        .outcome
        .as_ref()
        .and_then(|outcome| outcome.judgement.timing.as_ref());
    let by_device = timing.and_then(|timing| timing.started.parse().ok());
    let by_coordinator = || row.started.as_ref()?.parse().ok();
    if timing.is_some_and(|timing| timing.synchronised != Some(true)) {
        return by_coordinator().or(by_device);
    }
    by_device.or_else(by_coordinator)
}

/// Returns the time at which LoadGen started, with the date if that is not the date of `now`.
pub fn started(row: &RunRow, now: Timestamp) -> Option<String> {
    let start = zoned(start(row)?);
    let format = if start.date() == zoned(now).date() {
        "%H:%M:%S"
    } else {
        "%Y-%m-%d %H:%M"
    };
    Some(start.strftime(format).to_string())
}

/// Returns the duration of LoadGen's run in seconds.
pub fn seconds(row: &RunRow) -> Option<f64> {
    let nanoseconds = row.outcome.as_ref()?.judgement.timing.as_ref()?.duration_ns?;
    Some(nanoseconds as f64 / 1e9)
}

/// Returns the duration of LoadGen's run.
pub fn took(row: &RunRow) -> Option<String> {
    seconds(row).map(duration)
}

/// Returns whether the run has a result or may still get one. A failed or aborted run has a reason instead.
pub const fn has_result(row: &RunRow) -> bool {
    !matches!(row.state.phase, RunPhase::Failed | RunPhase::Aborted)
}

/// Returns the result in one line: verdict, figures, markers. A failed or aborted run says only why.
pub fn result(row: &RunRow) -> String {
    let state = state(row);
    if !has_result(row) {
        return match &row.state.reason {
            // Such as `aborted by the user`.
            Some(reason) if reason.starts_with(state) => escape(reason).into_owned(),
            Some(reason) => format!("{state}: {}", escape(reason)),
            None => state.to_owned(),
        };
    }
    let mut parts = vec![match figure(row) {
        Some(figure) => format!("{state} {figure}"),
        None => state.to_owned(),
    }];
    if let Some(outcome) = &row.outcome {
        let metric = outcome.accuracy.as_ref().map(|found| escape(&found.metric));
        parts.extend(
            metric
                .zip(accuracy(row))
                .map(|(metric, value)| format!("{metric} {value}")),
        );
        parts.extend(outcome.not_judged.iter().map(|why| escape(why).into_owned()));
    }
    let notes = notes(row);
    let result = parts.join(", ");
    if notes.is_empty() {
        result
    } else {
        format!("{result} ({notes})")
    }
}

/// Returns the result with the time that LoadGen ran. A failed or aborted run has only its state here; the report after the wait has the reason.
pub fn result_and_time(row: &RunRow, now: Timestamp) -> String {
    let result = |row: &RunRow| match has_result(row) {
        true => result(row),
        false => state(row).to_owned(),
    };
    let started = started(row, now).map(|started| format!("from {started} {}", zone_name(now)));
    let time: Vec<String> = [took(row), started].into_iter().flatten().collect();
    match time.as_slice() {
        [] => result(row),
        time => format!("{}, {}", result(row), time.join(" ")),
    }
}
