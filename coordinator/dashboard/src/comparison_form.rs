//! Fields and suggestions that the forms of comparisons and histories share. A form's values are in the page's URL.

use std::collections::BTreeSet;

use maud::{Markup, html};
use regatta_types::Scenario;

use super::{
    condition_query::{ConditionQuery, MAX_SELECTION, scenarios},
    outside_text::shown,
    query_words::MAX_TEXT,
};
use regatta_lab_store::{self as store, Store, lab_error::LabError};

/// The number of selections that are suggested.
const MAX_SUGGESTIONS: usize = 100;
/// The longest benchmark's name in characters.
const WORD: usize = 40;

/// The grammar of selections: form and meaning.
const GRAMMAR: [(&str, &str); 7] = [
    ("device:NAME", "runs of a device"),
    ("label:LABEL", "runs of devices with a label"),
    (
        "campaign:NAME/VARIANT",
        "runs of a campaign, or of one variant of its settings",
    ),
    (
        "set:KEY=VALUE",
        "runs with an engine setting; without a VALUE, those without the setting",
    ),
    ("engine:KIND", "runs of an engine"),
    ("agent:VERSION", "runs by a version of the agent"),
    ("RUN,RUN", "runs by id, its beginning or end, or the word last"),
];

/// The selections and benchmarks of the lab, as suggestions.
pub(super) struct Suggestions {
    selections: Vec<String>,
    benchmarks: Vec<String>,
}

impl Suggestions {
    /// Reads them from the store.
    pub(super) fn read(store: &Store) -> store::Result<Self> {
        let mut selections = Vec::new();
        for campaign in store.campaigns().all()? {
            let mut variants: Vec<String> = store
                .cells()
                .combinations(&campaign.name)?
                .into_iter()
                .filter_map(|combination| combination.variant)
                .collect();
            variants.sort_unstable();
            variants.dedup();
            selections.push(format!("campaign:{}", campaign.name));
            selections.extend(
                variants
                    .iter()
                    .map(|variant| format!("campaign:{}/{variant}", campaign.name)),
            );
        }
        selections.extend(store.labels().all()?.keys().map(|label| format!("label:{label}")));
        // Removed devices may have the names of present ones.
        let names: BTreeSet<String> = store.devices().names()?.into_values().collect();
        selections.extend(names.iter().map(|name| format!("device:{name}")));
        // A name with a plus would be two conditions, and a name that must be escaped cannot be typed.
        selections.retain(|words| !words.contains('+') && shown(words, MAX_TEXT) == *words);
        selections.truncate(MAX_SUGGESTIONS);
        Ok(Self {
            selections,
            benchmarks: store.runs().benchmarks()?,
        })
    }
}

/// Renders the field of a selection.
pub(super) fn selection_field(name: &str, title: &str, value: &str) -> Markup {
    html! {
        label .long { (title) " "
            input type="text" name=(name) value=(value) list="selections" maxlength=(MAX_SELECTION) autocomplete="off" spellcheck="false";
        }
    }
}

/// Renders the fields of the conditions, and the list of suggestions.
pub(super) fn condition_fields(query: &ConditionQuery, suggestions: &Suggestions) -> Markup {
    let choice = |name: &str, title: &str, words: &[&str], chosen: &str| {
        html! {
            label { (title) " "
                select name=(name) {
                    option value="" { "any" }
                    @for word in words { option value=(word) selected[*word == chosen] { (shown(word, WORD)) } }
                }
            }
        }
    };
    let benchmarks: Vec<&str> = suggestions.benchmarks.iter().map(String::as_str).collect();
    html! {
        datalist #selections { @for words in &suggestions.selections { option value=(words) {} } }
        (choice("benchmark", "Benchmark", &benchmarks, &query.benchmark))
        (choice("scenario", "Scenario", &scenarios(), query.scenario.map_or("", Scenario::as_str)))
        label { "Since " input type="text" name="since" value=(query.since) size="8" maxlength=(MAX_TEXT) placeholder="7d"; }
        (check_box("short", "short runs", query.has_short))
        (check_box("simulated", "simulated engines", query.has_simulated))
    }
}

/// Renders a check box.
pub(super) fn check_box(name: &str, title: &str, is_set: bool) -> Markup {
    html! { label { input type="checkbox" name=(name) value="1" checked[is_set]; " " (title) } }
}

/// Renders the grammar of selections.
pub(super) fn grammar() -> Markup {
    html! {
        details {
            summary { "How runs are selected" }
            p { "One of these, or several joined by " code { "+" } " that must all apply:" }
            dl .facts { @for (form, meaning) in GRAMMAR { dt { code { (form) } } dd { (meaning) } } }
        }
    }
}

/// Renders the failure in place of a result.
pub(super) fn refusal(failure: &LabError) -> Markup {
    html! { div .alarm role="alert" { (sentences(failure)) } }
}

/// Renders the reason why there is no result yet, although the reader has selected nothing wrong.
pub(super) fn nothing_yet(failure: &LabError) -> Markup {
    html! { div .note role="status" { (sentences(failure)) } }
}

fn sentences(failure: &LabError) -> Markup {
    /// The longest message in characters.
    const MESSAGE: usize = 400;
    html! {
        p { (shown(&failure.sentence(), MESSAGE)) "." }
        @for line in failure.advice().unwrap_or_default().lines().take(10) { p { (shown(line, MESSAGE)) } }
    }
}
