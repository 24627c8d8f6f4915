//! The page's URLs.

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::{Path, RawQuery},
    http::header,
    middleware,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use regatta_types::RunId;

use super::{
    access::{self, Access, Gate, Visitor, guard},
    actions, api, campaign_list_page,
    campaign_page::{self, CampaignSnapshot},
    computed_pages,
    device_page::{self, DeviceSnapshot},
    fleet_page,
    fleet_query::FleetQuery,
    hub::Hub,
    layout::Page,
    live, metrics,
    page_error::PageError,
    page_work::PageWork,
    protection::HostNames,
    route_table::{RouteTable, RouteUse, Routes},
    run_list_page,
    run_list_query::RunListQuery,
    run_page, static_files,
    submission_page::{self, Readiness, TreeReport},
    view::View,
};

type PageResult<T> = Result<T, PageError>;

/// Returns the routes behind the gate.
pub(super) fn routes(hub: Arc<Hub>, hosts: HostNames, access: Arc<Access>) -> Router {
    let (router, table) = all_routes();
    let gate = Arc::new(Gate { hosts, access, table });
    router
        .fallback(async || PageError::not_found("there is no such page"))
        .method_not_allowed_fallback(async || PageError::wrong_method())
        .layer(middleware::from_fn_with_state(gate, guard))
        .with_state(hub)
}

/// Returns every route with its use.
pub(super) fn all_routes() -> (Router<Arc<Hub>>, RouteTable) {
    let routes = Routes::new()
        .public("/static/{name}", get(static_file))
        .public("/login", get(access::show_login))
        .account("/login", RouteUse::Everybody, post(access::log_in))
        .account("/logout", RouteUse::Reader, post(access::log_out))
        .route("/", get(fleet))
        .route("/device/{device}", get(device))
        .route("/runs", get(runs))
        .route("/run/{run}", get(run))
        .route("/run/{run}/file/{name}", get(run_file))
        .route("/campaigns", get(campaigns))
        .route("/campaign/{name}", get(campaign))
        .route("/live/campaigns", get(live_campaigns))
        .route("/live/campaign/{name}", get(live_campaign))
        .route("/live/device/{device}", get(live_device))
        .route("/live/fleet", get(live_fleet))
        .route("/live/runs", get(live_runs))
        .route("/live/run/{run}", get(live_run))
        .route("/submission", get(submission))
        .route("/submission/{tree}", get(staged_tree))
        .route("/metrics", get(lab_metrics))
        .route("/metrics/grafana.json", get(grafana_dashboard))
        .action("/device/{device}/drain", post(actions::drain))
        .action("/device/{device}/resume", post(actions::resume))
        .action("/campaign/{name}/pause", post(actions::pause))
        .action("/campaign/{name}/resume", post(actions::resume_campaign))
        .action("/campaign/{name}/retry", post(actions::retry));
    api::add_routes(computed_pages::add_routes(routes)).finish()
}

async fn fleet(work: PageWork, RawQuery(query): RawQuery) -> PageResult<Page> {
    let query = fleet_query(query)?;
    work.quick(move |hub| {
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

async fn live_fleet(work: PageWork, RawQuery(query): RawQuery) -> PageResult<Response> {
    let view = View::Fleet(fleet_query(query)?);
    watched(&work, view).await
}

async fn device(
    work: PageWork,
    Extension(visitor): Extension<Visitor>,
    Path(device): Path<String>,
) -> PageResult<Page> {
    work.quick(move |hub| {
        hub.read(|reader| {
            let snapshot = DeviceSnapshot::read(&device, reader.store())?;
            let snapshot = snapshot.ok_or_else(PageError::no_device)?;
            Ok(device_page::page(&snapshot, &visitor.controls()))
        })
    })
    .await
}

async fn live_device(work: PageWork, Path(device): Path<String>) -> PageResult<Response> {
    let known = device.clone();
    let found = work.quick(move |hub| Ok(hub.read(|reader| DeviceSnapshot::read(&known, reader.store()))?));
    let id = found.await?.ok_or_else(PageError::no_device)?.row.id;
    watched(&work, View::Device(id)).await
}

async fn runs(work: PageWork, RawQuery(query): RawQuery) -> PageResult<Page> {
    let query = run_list_query(query)?;
    work.quick(move |hub| {
        hub.read(|reader| {
            let pieces = reader.render(&View::Runs(query.clone()))?;
            let benchmarks = reader.store().runs().benchmarks()?;
            Ok(run_list_page::page(&query, &pieces, &benchmarks))
        })
    })
    .await
}

async fn live_runs(work: PageWork, RawQuery(query): RawQuery) -> PageResult<Response> {
    let view = View::Runs(run_list_query(query)?);
    watched(&work, view).await
}

async fn run(work: PageWork, Path(run): Path<String>) -> PageResult<Page> {
    let run = run_id(&run)?;
    read_charts(&work, run).await?;
    work.quick(move |hub| {
        hub.read(|reader| {
            let row = reader.store().runs().get(run)?.ok_or_else(no_run)?;
            let pieces = reader.render_run(&row)?;
            Ok(run_page::page(&row, &pieces))
        })
    })
    .await
}

async fn live_run(work: PageWork, Path(run): Path<String>) -> PageResult<Response> {
    let run = run_id(&run)?;
    read_charts(&work, run).await?;
    let view = View::Run(run);
    watched(&work, view).await
}

/// Reads the data of a recorded run's plots, unless it is kept.
async fn read_charts(work: &PageWork, run: RunId) -> PageResult<()> {
    let is_kept = work.quick(move |hub| Ok(hub.read(|reader| reader.run_without_charts(run))?.is_none()));
    match is_kept.await? {
        true => Ok(()),
        false => work.slow(move |hub| Ok(hub.read_charts(run)?)).await,
    }
}

async fn run_file(work: PageWork, Path((run, name)): Path<(String, String)>) -> PageResult<Response> {
    let run = run_id(&run)?;
    let file = work.quick(move |hub| {
        hub.read(|reader| run_page::run_file(run, &name, reader.store(), reader.workspace()))
    });
    Ok(file.await?.into_response())
}

async fn campaigns(work: PageWork) -> PageResult<Page> {
    work.quick(|hub| {
        let pieces = hub.read(|reader| reader.render(&View::Campaigns))?;
        Ok(campaign_list_page::page(&pieces))
    })
    .await
}

async fn live_campaigns(work: PageWork) -> PageResult<Response> {
    watched(&work, View::Campaigns).await
}

async fn campaign(
    work: PageWork,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
) -> PageResult<Page> {
    work.quick(move |hub| {
        hub.read(|reader| {
            let store = reader.store();
            let row = store.campaigns().get(&name)?.ok_or_else(PageError::no_campaign)?;
            let snapshot = CampaignSnapshot::read(&row, store)?;
            let pieces = campaign_page::pieces(&snapshot);
            Ok(campaign_page::page(&snapshot, &pieces, &visitor.controls()))
        })
    })
    .await
}

async fn live_campaign(work: PageWork, Path(name): Path<String>) -> PageResult<Response> {
    let known = name.clone();
    let found = work.quick(move |hub| {
        Ok(hub
            .read(|reader| reader.store().campaigns().get(&known))?
            .is_some())
    });
    match found.await? {
        true => watched(&work, View::Campaign(name)).await,
        false => Err(PageError::no_campaign()),
    }
}

fn run_id(text: &str) -> PageResult<RunId> {
    text.parse().map_err(|_| no_run())
}

fn no_run() -> PageError {
    PageError::not_found("there is no such run; it may have been removed")
}

fn run_list_query(query: Option<String>) -> PageResult<RunListQuery> {
    RunListQuery::parse(&query.unwrap_or_default()).map_err(PageError::bad_request)
}

async fn submission(work: PageWork) -> PageResult<Page> {
    work.slow(|hub| {
        let workspace = hub.read(|reader| reader.workspace().clone());
        let readiness = Readiness::of(&workspace);
        let readiness = (*readiness).as_ref().map_err(PageError::of_files)?;
        Ok(submission_page::page(readiness))
    })
    .await
}

async fn staged_tree(work: PageWork, Path(tree): Path<String>) -> PageResult<Page> {
    work.slow(move |hub| {
        let workspace = hub.read(|reader| reader.workspace().clone());
        let report = TreeReport::of(&tree, &workspace)?;
        let report = (*report).as_ref().map_err(PageError::of_files)?;
        Ok(submission_page::tree_page(report))
    })
    .await
}

async fn lab_metrics(work: PageWork) -> PageResult<Response> {
    let text = work.quick(|hub| {
        hub.read(|reader| {
            let fleet = reader.fleet()?;
            Ok(metrics::metrics(&fleet, reader.store(), reader.workspace())?)
        })
    });
    Ok(([(header::CONTENT_TYPE, metrics::MEDIA_TYPE)], text.await?).into_response())
}

async fn grafana_dashboard() -> Response {
    (
        [(header::CONTENT_TYPE, "application/json")],
        metrics::GRAFANA_DASHBOARD,
    )
        .into_response()
}

async fn static_file(Path(name): Path<String>) -> Response {
    static_files::answer(&name)
        .unwrap_or_else(|| PageError::not_found("there is no such file").into_response())
}

fn fleet_query(query: Option<String>) -> PageResult<FleetQuery> {
    FleetQuery::parse(&query.unwrap_or_default()).map_err(PageError::bad_request)
}

/// Streams a view.
async fn watched(work: &PageWork, view: View) -> PageResult<Response> {
    let receiver = work.quick(move |hub| Ok(hub.watch(&view)?)).await?;
    receiver.map(live::events).ok_or_else(PageError::too_many_views)
}
