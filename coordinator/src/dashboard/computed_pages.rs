//! The URLs of pages that are computed when they are requested and do not change by themselves: comparisons, histories and power sessions.

use std::sync::Arc;

use axum::{
    extract::{Path, RawQuery, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::get,
};

use super::{
    compare_page,
    compare_query::CompareQuery,
    comparison_form::Suggestions,
    history_page,
    history_query::HistoryQuery,
    hub::Hub,
    layout::Page,
    page_error::PageError,
    power_list_page,
    power_page::{self, SessionView},
    route_table::Routes,
};
use crate::{
    exit::{self, Failure},
    store::Store,
    workspace::Workspace,
};

/// Adds the routes.
pub(super) fn add_routes(routes: Routes) -> Routes {
    routes
        .route("/compare", get(compare))
        .route("/history", get(history))
        .route("/power", get(power_sessions))
        .route("/power/{session}", get(power_session))
        .route("/power/{session}/file/{*path}", get(power_file))
}

async fn compare(State(hub): State<Arc<Hub>>, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let query = CompareQuery::parse(&query.unwrap_or_default()).map_err(PageError::bad_request)?;
    computed(hub, move |hub| {
        let (suggestions, workspace) = suggestions(hub)?;
        // Computed without the hub's lock, so that live pages do not wait.
        let result = (!query.is_empty()).then(|| compare_page::compared(&query, &workspace));
        let page = compare_page::page(&query, &suggestions, result.as_ref());
        Ok((result.and_then(Result::err).map(status), page))
    })
    .await
}

async fn history(State(hub): State<Arc<Hub>>, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let query = HistoryQuery::parse(&query.unwrap_or_default()).map_err(PageError::bad_request)?;
    computed(hub, move |hub| {
        let (suggestions, workspace) = suggestions(hub)?;
        let result = history_page::computed(&query, &workspace);
        let page = history_page::page(&query, &suggestions, &result);
        let refused = result.err().filter(|_| query != HistoryQuery::default());
        Ok((refused.map(status), page))
    })
    .await
}

async fn power_sessions(State(hub): State<Arc<Hub>>) -> Result<Response, PageError> {
    computed(hub, move |hub| {
        let rows = hub.read(|reader| reader.store().power_sessions())?;
        Ok((None, power_list_page::page(&rows)))
    })
    .await
}

async fn power_session(
    State(hub): State<Arc<Hub>>,
    Path(session): Path<String>,
) -> Result<Response, PageError> {
    computed(hub, move |hub| {
        let (store, workspace) = own_store(hub)?;
        let view = SessionView::read(&session, &store, &workspace)?;
        let view = view.ok_or_else(|| PageError::not_found("there is no such power session"))?;
        Ok((None, power_page::page(&view)))
    })
    .await
}

async fn power_file(
    State(hub): State<Arc<Hub>>,
    Path((session, path)): Path<(String, String)>,
) -> Result<Response, PageError> {
    let opened = tokio::task::spawn_blocking(move || {
        let (store, workspace) = own_store(&hub)?;
        power_page::file(&session, &path, &store, &workspace)
    })
    .await;
    Ok(opened
        .unwrap_or_else(|_| Err(PageError::internal()))?
        .into_response())
}

/// Returns a connection for work that would make live pages wait.
fn own_store(hub: &Hub) -> Result<(Store, Workspace), PageError> {
    let workspace = hub.read(|reader| reader.workspace().clone());
    Ok((Store::open(&workspace.database())?, workspace))
}

fn suggestions(hub: &Hub) -> Result<(Suggestions, Workspace), PageError> {
    hub.read(|reader| Ok((Suggestions::read(reader.store())?, reader.workspace().clone())))
}

/// Returns the status of a page that shows a failure: the reader's words, or the coordinator.
fn status(failure: Failure) -> StatusCode {
    if failure.code() == exit::USAGE {
        return StatusCode::BAD_REQUEST;
    }
    tracing::error!("the live page cannot compute: {}", failure.sentence());
    StatusCode::INTERNAL_SERVER_ERROR
}

/// Runs work that waits for files on a blocking thread.
async fn computed(
    hub: Arc<Hub>,
    work: impl FnOnce(&Hub) -> Result<(Option<StatusCode>, Page), PageError> + Send + 'static,
) -> Result<Response, PageError> {
    let done = tokio::task::spawn_blocking(move || work(&hub)).await;
    let (status, page) = done.unwrap_or_else(|_| Err(PageError::internal()))?;
    Ok((status.unwrap_or(StatusCode::OK), page).into_response())
}
