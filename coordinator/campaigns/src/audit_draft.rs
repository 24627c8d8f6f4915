//! The draft of an audit's run, from the good runs of the cells that it audits.

use regatta_catalogue::catalogue::Catalogue;
use regatta_text::ErrorChain;
use regatta_types::RunId;

use regatta_lab_runs::audit::{self, PlanError};
use regatta_lab_store::{RunDraft, Store, workspace::Workspace};

/// Returns the draft of the audit `test` of a performance run and an accuracy run. The inner error is the reason why there is none, as text
/// for the attempt.
///
/// # Errors
/// Returns an error when the store fails.
pub(super) fn audit_draft(
    test: &str,
    performance: RunId,
    accuracy: RunId,
    catalogue: &Catalogue,
    workspace: &Workspace,
    store: &Store,
) -> anyhow::Result<Result<RunDraft, String>> {
    let drafted = audit::of_runs(workspace, store, performance, accuracy).and_then(|audited| {
        let round = &audited.performance.draft.spec.round;
        match catalogue.round(Some(round)) {
            Ok(round) => audit::drafts(workspace, round, &audited, &[test.to_owned()]),
            Err(_) => Err(PlanError::NoRound(round.clone())),
        }
    });
    match drafted {
        Ok(mut drafts) => Ok(drafts.pop().ok_or_else(|| format!("{test} has no run"))),
        Err(PlanError::Store(error)) => Err(error.into()),
        Err(error) => Ok(Err(ErrorChain(&error).to_string())),
    }
}
