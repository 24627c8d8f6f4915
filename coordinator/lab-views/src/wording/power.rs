//! A power session's energy and news in a line.

use regatta_text::escape;
use regatta_types::documents::{PowerVerdict, SessionEnergy};

use regatta_lab_store::PowerSessionRow;

/// Formats the energy of a session's testing run in one line.
pub fn energy(energy: &SessionEnergy) -> String {
    let SessionEnergy {
        watts,
        seconds,
        joules,
        ..
    } = energy;
    let mut text = format!("testing run: {watts:.3} W over {seconds:.1} s, {joules:.1} J");
    if let Some(energy) = energy.millijoules_per_query {
        text.push_str(&format!(", {energy:.4} mJ per query"));
    }
    if let Some(samples) = energy.samples_per_joule {
        text.push_str(&format!(", {samples:.3} samples per joule"));
    }
    text
}

/// Formats a session's news in one line: the newest observation beside its step, or its end.
pub fn describe_power_session(row: &PowerSessionRow) -> String {
    let mut text = format!("power session {} of {} {}: ", row.id, row.benchmark, row.scenario);
    if row.ended.is_some() {
        text.push_str(&power_result(row.verdict, row.simulated));
        if let Some(reason) = row.reason().and_then(|reason| reason.lines().next()) {
            text.push_str(&format!(": {}", escape(reason)));
        }
        return text;
    }
    text.push_str(row.step.as_deref().unwrap_or("begins"));
    if let Some(watts) = row.watts {
        text.push_str(&format!(", {watts:.2} W"));
    }
    if let Some(observation) = &row.observation {
        text.push_str(&format!("; observed: {}", escape(observation)));
    }
    text
}

/// Returns the result of a session in a word, with a remark when PTDaemon was a simulated one.
pub fn power_result(verdict: Option<PowerVerdict>, simulated: Option<bool>) -> String {
    let word = verdict.map_or("failed", PowerVerdict::as_str);
    match simulated {
        Some(true) if !verdict.is_some_and(PowerVerdict::is_accepted) => format!("{word} (rehearsal)"),
        _ => word.to_owned(),
    }
}
