//! Facts about a run in sentences: its short id, figures, problems, and why it is repeated.

use regatta_text::escape;
use regatta_types::{RunId, documents::AccuracyResult};

use super::{audits, figure::value, run_text};
use regatta_lab_runs::rate_advice::RateAdvice;
use regatta_lab_store::{RunRow, StreamRow};

/// Returns the end of a run's id, by which commands find it. Ids begin with the time, so only their ends differ.
pub fn short_id(run: RunId) -> String {
    /// Enough that two runs of a workspace do not share the end.
    const LENGTH: usize = 8;
    let id = run.to_string();
    id[id.len() - LENGTH..].to_owned()
}

/// Formats the progress of a file's delivery.
pub fn stream_state(stream: &StreamRow) -> String {
    match stream.stated_length {
        _ if stream.is_complete => "complete".to_owned(),
        Some(length) => format!("of {length}"),
        None => "in delivery".to_owned(),
    }
}

/// Formats LoadGen's figures by name, where the checker's figure is not LoadGen's headline.
pub fn run_figures(row: &RunRow) -> Option<String> {
    let outcome = row.outcome.as_ref()?;
    let metric = outcome.judgement.metric.as_ref()?;
    let headline = format!("{} {}", escape(&metric.name), value(metric));
    match &outcome.judgement.figure {
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
pub fn why_not(row: &RunRow) -> String {
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
pub fn run_problems(row: &RunRow) -> Vec<String> {
    let mut reasons: Vec<String> = row.state.reason.iter().cloned().collect();
    if let Some(outcome) = row.outcome.as_ref() {
        reasons.extend(outcome.judgement.reasons.iter().map(|reason| advice(row, reason)));
        reasons.extend(outcome.not_judged.iter().cloned());
        reasons.extend(outcome.accuracy.as_ref().and_then(not_reached));
        if !outcome.complete {
            reasons.push("some files of the evidence are missing".to_owned());
        }
        if outcome.signed != Some(true) {
            reasons.push("the evidence is not signed by the device".to_owned());
        }
        let audit = outcome.audit.iter();
        reasons.extend(audit.filter_map(|audit| audits::why_not(audit, &row.draft.spec.round)));
    }
    reasons
}

/// Formats the reason why a run is repeated.
pub fn why_repeated(row: &RunRow) -> String {
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
