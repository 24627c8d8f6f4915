//! The draft of an audit's run, from the good runs of the cells that it audits.

use regatta_catalogue::catalogue::Catalogue;
use regatta_text::ErrorChain;
use regatta_types::RunId;

use regatta_lab_runs::audit::{self, AuditPlanError};
use regatta_lab_store::{RunDraft, Store, workspace::Workspace};

/// Why an attempt has no run: the reason of its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoDraft(pub(super) String);

/// Returns the draft of the audit `test` of a performance run and an accuracy run. The inner error is the reason why there is none.
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
) -> anyhow::Result<Result<RunDraft, NoDraft>> {
    let drafted = audit::of_runs(workspace, store, performance, accuracy).and_then(|audited| {
        let round = &audited.performance.draft.spec.round;
        match catalogue.round(Some(round)) {
            Ok(round) => audit::drafts(workspace, round, &audited, &[test.to_owned()]),
            Err(_) => Err(AuditPlanError::NoRound(round.clone())),
        }
    });
    match drafted {
        Ok(mut drafts) => Ok(drafts.pop().ok_or_else(|| NoDraft(format!("{test} has no run")))),
        Err(AuditPlanError::Store(error)) => Err(error.into()),
        Err(error) => Ok(Err(NoDraft(ErrorChain(&error).to_string()))),
    }
}
