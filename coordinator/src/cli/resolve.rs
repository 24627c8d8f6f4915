//! Resolves the input of a command line or plan to drafts, for the device that it names. [`regatta_lab_runs`] resolves the words.

use regatta_config::catalogue::Catalogue;

use crate::exit::Failure;
use regatta_lab_runs::{ParsedWords, ResolveError, Words};
use regatta_lab_store::{RunDraft, Store};
use regatta_lab_views::lookup;

/// Resolves the input to drafts, one per mode and scenario.
pub(crate) fn resolve(words: &Words, catalogue: &Catalogue, store: &Store) -> Result<Vec<RunDraft>, Failure> {
    let parsed = ParsedWords::parse(words, catalogue).map_err(unresolved)?;
    // The device is checked last: a wrong word is an error for every device, and also without any.
    let device = lookup::device(store, words.device.as_deref())?;
    parsed.drafts(&device).map_err(unresolved)
}

/// Returns the failure of a command whose request cannot become a run.
pub(super) fn unresolved(error: ResolveError) -> Failure {
    let hint = error.hint();
    let failure = if error.is_of_the_lab() {
        Failure::from(error)
    } else {
        Failure::usage(error)
    };
    failure.optional_hint(hint)
}
