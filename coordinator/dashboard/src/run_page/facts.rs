//! The facts of a run, the state of its device and its evidence, as lists.

use maud::{Markup, html};
use regatta_text::Escaped;

use crate::outside_text::{NAME, SENTENCE, shown};
use regatta_lab_store::RunRow;
use regatta_lab_views::wording::{self, run_text};

/// Renders the facts of the run.
pub(super) fn facts(row: &RunRow) -> Markup {
    let spec = &row.draft.spec;
    let device = run_text::device(row);
    let mut facts: Vec<(&str, String)> = vec![
        (
            "Benchmark",
            format!(
                "{}, {} {}, round {}",
                row.benchmark, row.scenario, row.mode, spec.round
            ),
        ),
        (
            "Engine",
            format!("{}, LoadGen {}", spec.engine.kind, Escaped(&spec.loadgen)),
        ),
        ("Requested", wording::time(&spec.created)),
    ];
    if let Some(start) = run_text::start(row) {
        let took = run_text::took(row).map_or_else(String::new, |took| format!(", took {took}"));
        facts.push((
            "LoadGen started",
            format!("{}{took}", wording::time(&start.to_string())),
        ));
    }
    facts.push(("Phase", row.shown_phase().to_string()));
    facts.extend(spec.gate.iter().map(|gate| ("Gate", gate.to_string())));
    facts.extend(wording::run_figures(row).map(|figures| ("Figures", figures)));
    if let Some(outcome) = &row.outcome {
        facts.extend(
            outcome
                .judgement
                .samples
                .map(|samples| ("Samples", samples.to_string())),
        );
        let agent = outcome.window.as_ref().map(wording::window);
        facts.extend(agent.map(|agent| ("Agent", format!("{agent} while LoadGen ran"))));
    }
    if let Some(of) = &spec.audit {
        let accuracy = of.accuracy.map_or_else(String::new, |run| format!(" and {run}"));
        facts.push(("Audit", format!("{} of {}{accuracy}", of.test, of.performance)));
    }
    if row.pending_abort.is_some() {
        facts.push(("Abort", format!("pending: {device} aborts it when it reconnects")));
    }
    let settings = spec.engine.settings.assignments();
    if !settings.is_empty() {
        facts.push(("Settings", settings.join(", ")));
    }
    facts.extend(run_text::campaign(row).map(|campaign| ("Campaign", campaign)));
    facts.extend(row.note.as_ref().map(|note| ("Note", note.clone())));
    html! {
        dl #facts .facts {
            dt { "Device" }
            dd { (shown(&device, NAME)) " " code { (row.device) } }
            @for (name, text) in &facts { (fact(name, text)) }
        }
    }
}

/// Renders the proof of the device's state.
pub(super) fn device_state(row: &RunRow) -> Markup {
    let facts = wording::device_state_facts(row);
    let proof = row
        .outcome
        .as_ref()
        .and_then(|outcome| outcome.device_state.as_ref());
    let Some(proof) = proof else {
        return html! { p .note { @if row.is_over() { "The agent gave no proof of it." } @else { "Shown once the run is recorded." } } };
    };
    let value = |value: Option<&String>| value.map_or_else(|| "–".to_owned(), |value| shown(value, NAME));
    html! {
        dl .facts { @for (name, text) in &facts { (fact(name, text)) } }
        @if !proof.set.is_empty() {
            table .small role="table" aria-label="Controls" {
                thead role="rowgroup" { tr role="row" {
                    @for title in ["Control", "Before", "Requested", "Read", "After"] {
                        th .number[title != "Control"] role="columnheader" scope="col" { (title) }
                    }
                } }
                tbody role="rowgroup" {
                    @for set in &proof.set {
                        tr role="row" {
                            th role="rowheader" scope="row" data-title="Control" { (shown(&set.control, NAME)) }
                            td .number role="cell" data-title="Before" { (value(set.before.as_ref())) }
                            td .number role="cell" data-title="Requested" { (shown(&set.requested, NAME)) }
                            td .number role="cell" data-title="Read" { (value(set.read.as_ref())) }
                            td .number role="cell" data-title="After" { (value(proof.after.get(&set.control))) }
                        }
                    }
                }
            }
        }
    }
}

/// Renders whether the files are those of the device.
pub(super) fn evidence(row: &RunRow) -> Markup {
    let Some(outcome) = &row.outcome else {
        return html! { p .note { "Shown once the run is recorded." } };
    };
    let signature = match outcome.signed {
        Some(true) => ("good", "signed by the device's key"),
        Some(false) => ("bad", "the signature is not of the device's key"),
        None => ("bad", "not signed by the device"),
    };
    let files = match outcome.complete {
        true => ("good", "every file of the evidence is here with its SHA-256"),
        false => ("bad", "some files of the evidence are missing"),
    };
    html! {
        ul .plain {
            @for (class, text) in [signature, files] { li { span class={ "badge v-" (class) } { (text) } } }
        }
        @if !outcome.contradictions.is_empty() {
            p { "The device contradicts its evidence:" }
            ul { @for what in &outcome.contradictions { li { (shown(what, SENTENCE)) } } }
        }
        @if !outcome.warnings.is_empty() {
            p { "The device warns that the measurement may have been disturbed:" }
            ul { @for what in &outcome.warnings { li { (shown(what, SENTENCE)) } } }
        }
        @if let Some(recorded) = &row.recorded {
            p .note {
                "Recorded " (wording::time(recorded)) ", " (wording::bytes(outcome.bytes)) ". Verify it again with "
                code { "regatta runs verify " (row.id) } "."
            }
        }
    }
}

fn fact(name: &str, text: &str) -> Markup {
    html! { dt { (name) } dd { (shown(text, SENTENCE)) } }
}
