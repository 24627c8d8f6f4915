//! The page's URLs.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    middleware,
    response::{IntoResponse as _, Response},
    routing::get,
};

use super::{
    fleet_page,
    fleet_query::FleetQuery,
    hub::Hub,
    layout::Page,
    live,
    page_error::PageError,
    protection::{Port, protect},
    static_files,
    view::View,
};

type Answer<T> = Result<T, PageError>;

/// Returns the routes.
pub(super) fn routes(hub: Arc<Hub>, port: Port) -> Router {
    Router::new()
        .route("/", get(fleet))
        .route("/live/fleet", get(live_fleet))
        .route("/static/{name}", get(static_file))
        .fallback(async || PageError::not_found("there is no such page"))
        .layer(middleware::from_fn_with_state(port, protect))
        .with_state(hub)
}

async fn fleet(State(hub): State<Arc<Hub>>, RawQuery(query): RawQuery) -> Answer<Page> {
    let query = fleet_query(query)?;
    blocking(hub, move |hub| {
        hub.read(|reader| {
            let pieces = reader.render(&View::Fleet(query.clone()))?;
            let mut labels: Vec<String> = Vec::new();
            for device in &reader.fleet()?.devices {
                labels.extend(device.row.labels.iter().map(ToString::to_string));
            }
            labels.sort_unstable();
            labels.dedup();
            Ok(fleet_page::page(&query, &pieces, &labels))
        })
    })
    .await
}

async fn live_fleet(State(hub): State<Arc<Hub>>, RawQuery(query): RawQuery) -> Answer<Response> {
    let view = View::Fleet(fleet_query(query)?);
    watched(hub, view).await
}

async fn static_file(Path(name): Path<String>) -> Response {
    static_files::answer(&name)
        .unwrap_or_else(|| PageError::not_found("there is no such file").into_response())
}

fn fleet_query(query: Option<String>) -> Answer<FleetQuery> {
    FleetQuery::parse(&query.unwrap_or_default()).map_err(PageError::bad_request)
}

/// Streams a view.
async fn watched(hub: Arc<Hub>, view: View) -> Answer<Response> {
    let receiver = blocking(hub, move |hub| Ok(hub.watch(&view)?)).await?;
    receiver.map(live::events).ok_or_else(PageError::too_busy)
}

/// Does work that waits for the store on a blocking thread.
async fn blocking<T: Send + 'static>(
    hub: Arc<Hub>,
    work: impl FnOnce(&Hub) -> Answer<T> + Send + 'static,
) -> Answer<T> {
    tokio::task::spawn_blocking(move || work(&hub))
        .await
        .unwrap_or_else(|_| Err(PageError::internal()))
}
