//! Operations that pause, continue, abort and retry campaigns. The coordinator's scheduler acts on what is stored here.

use std::collections::BTreeSet;

use jiff::Timestamp;
use regatta_types::documents::EndCause;

use super::OperationError;
use regatta_lab_store::{CampaignRow, CampaignState, Store};

/// Requests a state of a campaign in the name of `by`.
///
/// # Errors
/// Returns [`OperationError::Refused`] when the campaign has ended or has that state.
pub fn change_campaign(
    row: &CampaignRow,
    state: CampaignState,
    by: &str,
    store: &Store,
) -> Result<(), OperationError> {
    let name = &row.name;
    if store.campaigns().request_state(name, state, by)? {
        return Ok(());
    }
    let row = store.campaigns().get(name)?;
    let row = row.as_ref();
    let what = match row.map(|row| (&row.ended, row.state)) {
        None => "no longer exists".to_owned(),
        Some((Some(_), _)) => "has ended".to_owned(),
        Some((None, state)) => format!("is {state} already"),
    };
    Err(OperationError::refused(
        format!("campaign {name} {what}"),
        format!("`regatta campaign status {name}` shows its state"),
    ))
}

/// Makes the cells of a campaign that failed by a cause wait again, in the name of `by`. Returns how many.
///
/// # Errors
/// Returns [`OperationError::Refused`] when the campaign was aborted, its deadline has passed, or no cell failed by the cause.
pub fn retry_cells(
    row: &CampaignRow,
    cause: EndCause,
    by: &str,
    store: &Store,
) -> Result<usize, OperationError> {
    let name = &row.name;
    expect_retriable(row)?;
    let retried = store.cells().retry(name, cause, by)?;
    if retried == 0 {
        return Err(OperationError::refused(
            format!("no cell of campaign {name} failed with the cause {cause}"),
            format!("`regatta campaign status {name}` shows the causes"),
        ));
    }
    Ok(retried)
}

/// Makes all failed cells of a campaign wait again, in the name of `by`. Returns how many.
///
/// # Errors
/// Returns [`OperationError::Refused`] when the campaign was aborted, its deadline has passed, or no cell failed.
pub fn retry_failed_cells(row: &CampaignRow, by: &str, store: &Store) -> Result<usize, OperationError> {
    let name = &row.name;
    expect_retriable(row)?;
    let cells = store.cells().of_campaign(name)?;
    let causes: BTreeSet<EndCause> = cells.iter().filter_map(|cell| cell.cause).collect();
    let mut retried = 0;
    for cause in causes {
        retried += store.cells().retry(name, cause, by)?;
    }
    if retried == 0 {
        return Err(OperationError::refused(
            format!("no cell of campaign {name} failed"),
            format!("`regatta campaign status {name}` shows its cells"),
        ));
    }
    Ok(retried)
}

/// Makes the skipped cells of a campaign wait again, in the name of `by`. Returns how many.
///
/// # Errors
/// Returns [`OperationError::Refused`] when the campaign was aborted, its deadline has passed, or no cell was skipped.
pub fn retry_skipped_cells(row: &CampaignRow, by: &str, store: &Store) -> Result<usize, OperationError> {
    let name = &row.name;
    expect_retriable(row)?;
    let retried = store.cells().retry_skipped(name, by)?;
    if retried == 0 {
        return Err(OperationError::refused(
            format!("no cell of campaign {name} was skipped that could have a good run"),
            format!(
                "`regatta campaign retry {name} --cause CAUSE` tries failed cells again, and the audits that were skipped because of them"
            ),
        ));
    }
    Ok(retried)
}

/// Moves the deadline of a campaign in the name of `by`, or removes it.
///
/// # Errors
/// Returns [`OperationError::Refused`] when the campaign was aborted.
pub fn move_deadline(
    row: &CampaignRow,
    until: Option<Timestamp>,
    by: &str,
    store: &Store,
) -> Result<(), OperationError> {
    let until = until.map(|until| until.to_string());
    if store.campaigns().set_deadline(&row.name, until.as_deref(), by)? {
        Ok(())
    } else {
        Err(aborted_error(&row.name))
    }
}

/// Checks that cells of a campaign may wait again.
fn expect_retriable(row: &CampaignRow) -> Result<(), OperationError> {
    let name = &row.name;
    if row.state == CampaignState::Aborted {
        return Err(aborted_error(name));
    }
    if let Some(deadline) = row.deadline.as_ref().filter(|at| has_passed(at)) {
        return Err(OperationError::refused(
            format!("the deadline of campaign {name} passed at {deadline}"),
            format!("`regatta campaign deadline {name} --until TIME` moves it"),
        ));
    }
    Ok(())
}

fn aborted_error(name: &str) -> OperationError {
    OperationError::refused(
        format!("campaign {name} was aborted"),
        "start a plan with another name",
    )
}

fn has_passed(deadline: &str) -> bool {
    let at: Result<Timestamp, _> = deadline.parse();
    at.is_ok_and(|at| at <= Timestamp::now())
}
