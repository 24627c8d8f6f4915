//! The URLs of pages that are computed when they are requested and do not change by themselves: comparisons, histories and power sessions.

use axum::{
    extract::{Path, RawQuery},
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::get,
};
use regatta_types::ErrorKind;

use super::{
    compare_page,
    compare_query::CompareQuery,
    comparison_form::Suggestions,
    history_page,
    history_query::HistoryQuery,
    hub::Hub,
    layout::Page,
    page_error::PageError,
    page_work::PageWork,
    power_list_page,
    power_page::{self, SessionView},
    route_table::Routes,
};
use regatta_lab_store::{Store, lab_error::LabError, workspace::Workspace};

pub(super) fn add_routes(routes: Routes) -> Routes {
    routes
        .route("/compare", get(compare))
        .route("/history", get(history))
        .route("/power", get(power_sessions))
        .route("/power/{session}", get(power_session))
        .route("/power/{session}/file/{*path}", get(power_file))
}

async fn compare(work: PageWork, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let query = CompareQuery::parse(&query.unwrap_or_default()).map_err(PageError::bad_request)?;
    computed(&work, move |hub| {
        let (suggestions, workspace) = suggestions(hub)?;
        // Computed without the hub's lock, so that live pages do not wait.
        let result = (!query.is_empty()).then(|| compare_page::compared(&query, &workspace));
        let page = compare_page::page(&query, &suggestions, result.as_ref());
        let refused = result.as_ref().and_then(|result| (**result).as_ref().err());
        Ok((refused.map(status), page))
    })
    .await
}

async fn history(work: PageWork, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let query = HistoryQuery::parse(&query.unwrap_or_default()).map_err(PageError::bad_request)?;
    computed(&work, move |hub| {
        let (suggestions, workspace) = suggestions(hub)?;
        let result = history_page::computed(&query, &workspace);
        let page = history_page::page(&query, &suggestions, &result);
        let refused = (*result).as_ref().err();
        let refused = refused.filter(|_| query != HistoryQuery::default());
        Ok((refused.map(status), page))
    })
    .await
}

async fn power_sessions(work: PageWork) -> Result<Response, PageError> {
    computed(&work, move |hub| {
        let rows = hub.read(|reader| reader.store().power_sessions().all())?;
        Ok((None, power_list_page::page(&rows)))
    })
    .await
}

async fn power_session(work: PageWork, Path(session): Path<String>) -> Result<Response, PageError> {
    computed(&work, move |hub| {
        let (store, workspace) = own_store(hub)?;
        let view = SessionView::read(&session, &store, &workspace)?;
        let view = view.ok_or_else(|| PageError::not_found("there is no such power session"))?;
        Ok((None, power_page::page(&view)))
    })
    .await
}

async fn power_file(
    work: PageWork,
    Path((session, path)): Path<(String, String)>,
) -> Result<Response, PageError> {
    let opened = work.quick(move |hub| {
        let (store, workspace) = own_store(hub)?;
        power_page::file(&session, &path, &store, &workspace)
    });
    Ok(opened.await?.into_response())
}

/// Returns a connection for work that would make live pages wait.
fn own_store(hub: &Hub) -> Result<(Store, Workspace), PageError> {
    let workspace = hub.read(|reader| reader.workspace().clone());
    Ok((workspace.store()?, workspace))
}

fn suggestions(hub: &Hub) -> Result<(Suggestions, Workspace), PageError> {
    hub.read(|reader| Ok((Suggestions::read(reader.store())?, reader.workspace().clone())))
}

/// Returns the status of a page that shows a failure: the reader's words, or the coordinator.
fn status(failure: &LabError) -> StatusCode {
    if failure.kind() == ErrorKind::Usage {
        return StatusCode::BAD_REQUEST;
    }
    tracing::error!("the live page cannot compute: {}", failure.sentence());
    StatusCode::INTERNAL_SERVER_ERROR
}

/// Answers with a page that takes a while to compute.
async fn computed(
    work: &PageWork,
    compute: impl FnOnce(&Hub) -> Result<(Option<StatusCode>, Page), PageError> + Send + 'static,
) -> Result<Response, PageError> {
    let (status, page) = work.slow(compute).await?;
    Ok((status.unwrap_or(StatusCode::OK), page).into_response())
}
