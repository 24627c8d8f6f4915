//! The operators' actions on the page: the operations of the command line, in the name of the token's owner. Every handler is behind the
//! gate, which makes the [`Operator`]. After an action the browser gets the page again, so that a reload repeats nothing.

use axum::{
    Extension,
    extract::Path,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use regatta_types::documents::EndCause;

use super::{
    access::{Form, Operator},
    device_page::{DeviceSnapshot, MAX_NOTE},
    hub::Hub,
    outside_text::path_segment,
    page_error::PageError,
    page_work::PageWork,
};
use regatta_lab_store::{CampaignRow, CampaignState, DeviceRow, Store};
use regatta_lab_views::operations::{self, OperationError};

type ActionResult = Result<Response, PageError>;

/// Takes a device out of service.
pub(super) async fn drain(
    work: PageWork,
    Path(device): Path<String>,
    Extension(operator): Extension<Operator>,
    Extension(form): Extension<Form>,
) -> ActionResult {
    let note = form.field("note").to_owned();
    if note.chars().count() > MAX_NOTE {
        let message = format!("the reason has more than {MAX_NOTE} characters");
        return Err(PageError::bad_request(message));
    }
    on_device(&work, device, operator, move |row, by, store| {
        operations::drain_device(
            row,
            Some(note.as_str()).filter(|note| !note.is_empty()),
            by,
            store,
        )
    })
    .await
}

/// Puts a device back into service.
pub(super) async fn resume(
    work: PageWork,
    Path(device): Path<String>,
    Extension(operator): Extension<Operator>,
) -> ActionResult {
    on_device(&work, device, operator, operations::resume_device).await
}

/// Pauses a campaign.
pub(super) async fn pause(
    work: PageWork,
    Path(name): Path<String>,
    Extension(operator): Extension<Operator>,
) -> ActionResult {
    on_campaign(&work, name, operator, |row, by, store| {
        operations::change_campaign(row, CampaignState::Paused, by, store)
    })
    .await
}

/// Continues a campaign.
pub(super) async fn resume_campaign(
    work: PageWork,
    Path(name): Path<String>,
    Extension(operator): Extension<Operator>,
) -> ActionResult {
    on_campaign(&work, name, operator, |row, by, store| {
        operations::change_campaign(row, CampaignState::Running, by, store)
    })
    .await
}

/// Makes failed cells of a campaign wait again.
pub(super) async fn retry(
    work: PageWork,
    Path(name): Path<String>,
    Extension(operator): Extension<Operator>,
    Extension(form): Extension<Form>,
) -> ActionResult {
    let cause: EndCause = form.field("cause").parse().map_err(|_| {
        PageError::bad_request(
            "the form names no cause: device, infrastructure, precondition, workload, invalid or operator",
        )
    })?;
    on_campaign(&work, name, operator, move |row, by, store| {
        operations::retry_cells(row, cause, by, store).map(drop)
    })
    .await
}

async fn on_device(
    work: &PageWork,
    device: String,
    operator: Operator,
    operation: impl FnOnce(&DeviceRow, &str, &Store) -> Result<(), OperationError> + Send + 'static,
) -> ActionResult {
    work.action(move |hub| {
        let store = writable_store(hub)?;
        let snapshot = DeviceSnapshot::read(&device, &store)?;
        let row = snapshot.ok_or_else(PageError::no_device)?.row;
        expect_permission(&operator)?;
        operation(&row, &operator.author(), &store).map_err(refusal)?;
        see_other(format!("/device/{}", row.id))
    })
    .await
}

async fn on_campaign(
    work: &PageWork,
    name: String,
    operator: Operator,
    operation: impl FnOnce(&CampaignRow, &str, &Store) -> Result<(), OperationError> + Send + 'static,
) -> ActionResult {
    work.action(move |hub| {
        let store = writable_store(hub)?;
        let row = store.campaigns().get(&name)?.ok_or_else(PageError::no_campaign)?;
        expect_permission(&operator)?;
        operation(&row, &operator.author(), &store).map_err(refusal)?;
        see_other(format!("/campaign/{}", path_segment(&row.name)))
    })
    .await
}

/// Checks that the operator may still act after the action has waited for its turn.
fn expect_permission(operator: &Operator) -> Result<(), PageError> {
    match operator.may_act() {
        true => Ok(()),
        false => Err(PageError::ended_permission()),
    }
}

/// Opens the store once more: the page's own connection does not see its own changes as changes.
fn writable_store(hub: &Hub) -> Result<Store, PageError> {
    let workspace = hub.read(|reader| reader.workspace().clone());
    Ok(workspace.store()?)
}

/// Returns the refusal, worded as on the command line.
fn refusal(error: OperationError) -> PageError {
    match error {
        OperationError::Refused(refusal) => PageError::conflict(refusal.sentence),
        OperationError::Store(error) => error.into(),
    }
}

fn see_other(path: String) -> ActionResult {
    let path = HeaderValue::from_str(&path).map_err(|_| PageError::internal())?;
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, path)]).into_response())
}
