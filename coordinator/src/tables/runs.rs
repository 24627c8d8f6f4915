//! Tables of runs.

use comfy_table::ContentArrangement;
use jiff::Timestamp;
use regatta_text::{Escaped, escape};
use regatta_types::{RunId, documents::AccuracyResult};

use super::{cell, figure::value, fits, keep_whole, right, run_text, table, words};
use crate::{
    runs::{marker_reasons, rate_advice::RateAdvice},
    store::{RunRow, StreamRow},
    workspace::RunDir,
};

/// Formats the notes on a run. The number is the longest text in characters.
type Note = fn(&RunRow, usize) -> String;
/// The longest note on a run that has a line, and on one that has two lines.
const LONGEST_NOTE: [usize; 2] = [56, 24];

/// Formats runs, one line each, or two on a narrow terminal. The reasons of failed runs are printed apart from it ([`why_not`]).
pub(crate) fn runs(rows: &[RunRow]) -> String {
    arranged(rows, |row, _| run_text::notes(row))
}

/// Formats runs as [`runs`], with the beginning of the reason of failed and aborted ones.
pub(crate) fn listed_runs(rows: &[RunRow]) -> String {
    arranged(rows, run_text::notes_or_reason)
}

fn arranged(rows: &[RunRow], note: Note) -> String {
    let now = Timestamp::now();
    let wide = a_line_each(rows, now, note);
    if fits(&wide) {
        wide
    } else {
        two_lines_each(rows, now, note)
    }
}

pub(super) fn a_line_each(rows: &[RunRow], now: Timestamp, note: Note) -> String {
    let mut table = table([
        "run",
        "device",
        "benchmark",
        "scenario",
        "mode",
        "engine",
        "started (UTC)",
        "took",
        "state",
        "figure",
        "accuracy",
        "note",
    ]);
    table.set_content_arrangement(ContentArrangement::Disabled);
    for row in rows {
        table.add_row([
            cell(short_id(row.id)),
            cell(run_text::device(row)),
            cell(&row.benchmark),
            cell(row.scenario),
            cell(run_text::mode(row)),
            cell(row.draft.spec.engine.kind),
            cell(run_text::started(row, now).unwrap_or_default()),
            right(run_text::took(row).unwrap_or_default()),
            cell(run_text::state(row)),
            right(run_text::figure(row).unwrap_or_default()),
            right(run_text::accuracy(row).unwrap_or_default()),
            cell(note(row, LONGEST_NOTE[0])),
        ]);
    }
    table.trim_fmt()
}

pub(super) fn two_lines_each(rows: &[RunRow], now: Timestamp, note: Note) -> String {
    let mut table = table(["run", "benchmark", "result"]);
    for row in rows {
        let figures = [run_text::figure(row), run_text::accuracy(row)];
        let figures: Vec<String> = figures.into_iter().flatten().collect();
        let time = [run_text::started(row, now), run_text::took(row)];
        let origin: Vec<String> = [run_text::device(row), row.draft.spec.engine.kind.to_string()]
            .into_iter()
            .chain(time.into_iter().flatten())
            .collect();
        table.add_row([
            short_id(row.id),
            format!(
                "{} {} {}\n{}",
                escape(&row.benchmark),
                row.scenario,
                run_text::mode(row),
                origin.join(", ")
            ),
            format!(
                "{} {}\n{}",
                run_text::state(row),
                figures.join(", "),
                note(row, LONGEST_NOTE[1])
            ),
        ]);
    }
    keep_whole(&mut table, 0);
    table.trim_fmt()
}

/// Returns the end of a run's id, by which commands find it. Ids begin with the time, so only their ends differ.
pub(crate) fn short_id(run: RunId) -> String {
    /// Enough that two runs of a workspace do not share the end.
    const LENGTH: usize = 8;
    let id = run.to_string();
    id[id.len() - LENGTH..].to_owned()
}

/// Formats one run with its streams.
pub(crate) fn run(row: &RunRow, streams: &[StreamRow], dir: &RunDir) -> String {
    let spec = &row.draft.spec;
    let has_result = run_text::has_result(row);
    let mut lines = Vec::new();
    if !has_result {
        lines.push(format!("state      {}", run_text::result(row)));
    }
    lines.extend([
        format!("run        {}", row.id),
        format!("device     {} ({})", run_text::device(row), row.device),
        format!(
            "benchmark  {}, {} {}, round {}",
            escape(&row.benchmark),
            row.scenario,
            run_text::task(row),
            escape(&spec.round)
        ),
        format!(
            "engine     {}, LoadGen {}",
            spec.engine.kind,
            Escaped(&spec.loadgen)
        ),
    ]);
    if let Some(start) = run_text::start(row) {
        let took = run_text::took(row).map_or_else(String::new, |took| format!(", took {took}"));
        lines.push(format!("started    {}{took}", words::time(&start.to_string())));
    }
    if has_result {
        let waits = run_text::waits_for(row).map_or_else(String::new, |why| format!(": {why}"));
        lines.push(format!("state      {}{waits}", row.shown_phase()));
    }
    let gate = spec.gate.iter();
    lines.extend(gate.map(|gate| format!("gate       {gate}")));
    if row.pending_abort.is_some() {
        lines.push(format!(
            "abort      pending: {} aborts it when it reconnects",
            run_text::device(row)
        ));
    }
    if has_result && row.outcome.is_some() {
        lines.push(format!("result     {}", run_text::result(row)));
        if !row.is_good() {
            let reasons = run_problems(row).into_iter();
            lines.extend(reasons.map(|reason| format!("reason     {}", escape(&reason))));
        }
    }
    lines.extend(run_figures(row).map(|figures| format!("figures    {figures}")));
    let reasons = marker_reasons(row).into_iter();
    lines.extend(reasons.map(|found| format!("{}: {}", found.marker, escape(&found.reason))));
    if let Some(outcome) = &row.outcome {
        let loaded = outcome.loaded_engine.as_deref().map(escape);
        lines.extend(loaded.map(|engine| format!("loaded     {engine}")));
        // Without a start, LoadGen did not run.
        let measured = spec.task.is_measurement() && outcome.timing.is_some();
        let agent = outcome.window.as_ref().filter(|_| measured).map(words::window);
        lines.extend(agent.map(|agent| format!("agent      {agent} while LoadGen ran")));
    }
    let contradictions = row.outcome.iter().flat_map(|outcome| &outcome.contradictions);
    lines.extend(contradictions.map(|what| format!("contradiction: {}", escape(what))));
    lines.push(format!("directory  {}", dir.path().display()));
    if let Some(of) = &spec.audit {
        let accuracy = of.accuracy.map_or_else(String::new, |run| format!(" and {run}"));
        lines.push(format!(
            "audits     {} of {}{accuracy}",
            escape(&of.test),
            of.performance
        ));
    }
    lines.extend(super::audit(row));
    lines.extend(super::device_state::of(row));
    if !streams.is_empty() {
        let mut table = table(["file", "bytes", "state"]);
        for stream in streams {
            table.add_row([
                cell(&stream.name),
                right(stream.committed),
                cell(stream_state(stream)),
            ]);
        }
        lines.push(String::new());
        lines.push(table.trim_fmt());
    }
    lines.join("\n")
}

/// Formats the progress of a file's delivery.
pub(crate) fn stream_state(stream: &StreamRow) -> String {
    match stream.stated_length {
        _ if stream.whole => "complete".to_owned(),
        Some(length) => format!("of {length}"),
        None => "in delivery".to_owned(),
    }
}

/// Formats LoadGen's figures by name, where the checker's figure is not LoadGen's headline.
pub(crate) fn run_figures(row: &RunRow) -> Option<String> {
    let outcome = row.outcome.as_ref()?;
    let metric = outcome.metric.as_ref()?;
    let headline = format!("{} {}", escape(&metric.name), value(metric));
    match &outcome.judged {
        Some(judged) if judged.name == metric.name => None,
        Some(judged) => Some(format!(
            "{} {}, as the checker reports; {headline}",
            escape(&judged.name),
            value(judged)
        )),
        None => Some(headline),
    }
}

/// Formats the reason why a run is not good. A failed or aborted run has its state and its reason. The other problems follow from that.
pub(crate) fn why_not(row: &RunRow) -> String {
    if !run_text::has_result(row) {
        let run = short_id(row.id);
        return format!("{}, run {run}: {}", run_text::subject(row), run_text::result(row));
    }
    format!(
        "{} {} {}: {}",
        run_text::device(row),
        row.scenario,
        run_text::mode(row),
        escape(&run_problems(row).join("; "))
    )
}

/// Returns the reasons why a run with a result is not good: LoadGen's reasons with hints, the accuracy, the evidence, the audit.
pub(crate) fn run_problems(row: &RunRow) -> Vec<String> {
    let mut reasons: Vec<String> = row.state.reason.iter().cloned().collect();
    if let Some(outcome) = row.outcome.as_ref() {
        reasons.extend(outcome.reasons.iter().map(|reason| advice(row, reason)));
        reasons.extend(outcome.not_judged.iter().cloned());
        reasons.extend(outcome.accuracy.as_ref().and_then(not_reached));
        if !outcome.complete {
            reasons.push("some files of the evidence are missing".to_owned());
        }
        if outcome.signed != Some(true) {
            reasons.push("the evidence is not signed by the device".to_owned());
        }
        let audit = outcome.audit.iter();
        reasons.extend(audit.filter_map(|audit| super::audits::why_not(audit, &row.draft.spec.round)));
    }
    reasons
}

/// Formats the reason why a run is repeated.
pub(crate) fn why_repeated(row: &RunRow) -> String {
    format!(
        "{}: INVALID, the rate was a guess; repeating at the measured rate",
        run_text::subject(row)
    )
}

/// Formats why an accuracy does not reach its target: samples without a response, or a figure out of its bounds.
fn not_reached(found: &AccuracyResult) -> Option<String> {
    if let Some(why) = found.incomplete() {
        return Some(why);
    }
    let mut missed = Vec::new();
    if let Some(target) = found.target.filter(|target| found.value < *target) {
        let [value, target, unit] = run_text::with_target(found, target);
        missed.push(format!(
            "{} is {value}{unit}, {target}{unit} are needed",
            found.metric
        ));
    }
    let further = found.further.iter().filter(|figure| !figure.is_reached());
    missed.extend(further.map(|figure| format!("{} is {}, out of its bounds", figure.figure, figure.value)));
    (!missed.is_empty()).then(|| missed.join(", "))
}

/// Adds a hint to a recommendation of LoadGen, which is written for users of its own `user.conf`.
fn advice(row: &RunRow, reason: &str) -> String {
    let Some(advice) = RateAdvice::of(reason) else {
        return reason.to_owned();
    };
    if let Some(key) = row.draft.fixed_rate() {
        return format!(
            "LoadGen: {} (`--conf {key}` fixes the rate: leave it out, or change it)",
            reason.trim_end_matches('.')
        );
    }
    let action = match advice {
        RateAdvice::MoreQueries => "the expected rate was a guess: run again, and the measured rate is used",
        RateAdvice::HigherRate => "run again, or set a higher rate with `--conf target_qps=RATE`",
        RateAdvice::LowerRate => {
            "run again, and a lower rate is used, or set one with `--conf target_qps=RATE`"
        }
    };
    format!("LoadGen: {} ({action})", reason.trim_end_matches('.'))
}
