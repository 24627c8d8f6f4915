//! `/api/v1`: devices, runs, campaigns and comparisons as JSON, in the same documents as `--format json`. It is read-only. The routes and the OpenAPI
//! document are generated from one table of operations.

mod comparison;
mod openapi;
mod operation;
mod power;

use axum::{
    extract::{RawPathParams, RawQuery},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use regatta_text::escape_json;
use regatta_types::RunId;
use serde_json::{Value, json};

use self::operation::{ApiRequest, DocumentReader, Operation, Parameter, value};
use super::{
    page_error::PageError, page_work::PageWork, route_table::Routes, run_list_page::RunList,
    run_list_query::RunListQuery, view::Reader,
};
use regatta_lab_store::DeviceRow;
use regatta_lab_views::documents::{
    DeviceDocument, DeviceList, campaign_status, campaign_summary, run_document, shown_run,
};

/// The path of the OpenAPI document.
const OPENAPI: &str = "/api/v1/openapi.json";

/// The operations that read the store.
const STORED: [Operation; 6] = [
    Operation {
        path: "/api/v1/devices",
        summary: "Every device, as `regatta device list` prints them.",
        query: &[],
        schema: "devices",
        read: DocumentReader::Stored(devices),
    },
    Operation {
        path: "/api/v1/devices/{device}",
        summary: "A device by its name or id, as `regatta device show` prints it.",
        query: &[],
        schema: "device",
        read: DocumentReader::Stored(device),
    },
    Operation {
        path: "/api/v1/runs",
        summary: "Up to 50 runs, newest first, as `regatta runs list` prints each. `next` is the value of `before` for the next ones.",
        query: &[
            Parameter::optional(
                "device",
                "a part of the device's name, or the beginning of its id",
            ),
            Parameter::optional("benchmark", "the benchmark's name"),
            Parameter::optional("verdict", "valid, invalid, pass, fail, failed, aborted or open"),
            Parameter::optional("before", "only runs that were requested before this one"),
        ],
        schema: openapi::RUN_PAGE,
        read: DocumentReader::Stored(runs),
    },
    Operation {
        path: "/api/v1/runs/{run}",
        summary: "A run with its files, as `regatta runs show` prints it.",
        query: &[],
        schema: "run",
        read: DocumentReader::Stored(run),
    },
    Operation {
        path: "/api/v1/campaigns",
        summary: "Every campaign, as `regatta campaign list` prints them.",
        query: &[],
        schema: "campaigns",
        read: DocumentReader::Stored(campaigns),
    },
    Operation {
        path: "/api/v1/campaigns/{campaign}",
        summary: "A campaign, as `regatta campaign status` prints it.",
        query: &[],
        schema: "campaign",
        read: DocumentReader::Stored(campaign),
    },
];

/// Returns every operation.
fn operations() -> Vec<Operation> {
    [&STORED[..], &comparison::OPERATIONS, &power::OPERATIONS].concat()
}

pub(super) fn add_routes(routes: Routes) -> Routes {
    let mut routes = routes.route(
        OPENAPI,
        get(async || answer(StatusCode::OK, &openapi::document(&operations()))),
    );
    for operation in operations() {
        let reader = operation.read;
        let handler = move |work: PageWork, parameters: RawPathParams, RawQuery(query): RawQuery| {
            let name = parameters.iter().next().map_or("", |(_, value)| value).to_owned();
            let request = ApiRequest {
                name,
                query: query.unwrap_or_default(),
            };
            async move {
                match read(reader, &work, request).await {
                    Ok(document) => answer(StatusCode::OK, &document),
                    Err(failure) => error(&failure),
                }
            }
        };
        routes = routes.route(operation.path, get(handler));
    }
    routes
}

/// Returns an error as a document.
pub(super) fn error(error: &PageError) -> Response {
    let document = json!({ "error": error.message, "hint": error.hint });
    error.shown_as(answer(error.status, &document))
}

async fn read(reader: DocumentReader, work: &PageWork, request: ApiRequest) -> Result<Value, PageError> {
    match reader {
        DocumentReader::Stored(read) => {
            work.quick(move |hub| hub.read(|reader| read(reader, &request)))
                .await
        }
        DocumentReader::Computed(read) => {
            work.slow(move |hub| {
                let workspace = hub.read(|reader| reader.workspace().clone());
                read(&workspace, &request)
            })
            .await
        }
    }
}

fn answer(status: StatusCode, document: &Value) -> Response {
    // Programs read the same values, and a terminal shows them safely.
    let text = escape_json(&document.to_string()).into_owned();
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

fn devices(reader: &mut Reader, _: &ApiRequest) -> Result<Value, PageError> {
    let devices = reader.store().devices().all()?;
    let refused = reader.store().devices().other_versions()?;
    value(DeviceList::of(&devices, &refused))
}

fn device(reader: &mut Reader, request: &ApiRequest) -> Result<Value, PageError> {
    let devices = reader.store().devices().all()?;
    let is_meant = |row: &&DeviceRow| row.name == request.name || row.id.as_str() == request.name;
    let row = devices.iter().find(is_meant);
    value(DeviceDocument::from(
        row.ok_or_else(|| PageError::not_found("there is no such device"))?,
    ))
}

fn runs(reader: &mut Reader, request: &ApiRequest) -> Result<Value, PageError> {
    let query = RunListQuery::parse(&request.query).map_err(PageError::bad_request)?;
    let list = RunList::read(&query, reader.store())?;
    let runs: Vec<_> = list.rows.iter().map(run_document).collect();
    value(json!({ "runs": runs, "next": list.last_read }))
}

fn run(reader: &mut Reader, request: &ApiRequest) -> Result<Value, PageError> {
    let missing = || PageError::not_found("there is no such run");
    let id: RunId = request.name.parse().map_err(|_| missing())?;
    let row = reader.store().runs().get(id)?.ok_or_else(missing)?;
    let streams = reader.store().streams().of_run(id)?;
    value(shown_run(&row, &streams, &reader.workspace().run(id)))
}

fn campaigns(reader: &mut Reader, _: &ApiRequest) -> Result<Value, PageError> {
    let store = reader.store();
    let rows = store.campaigns().all()?;
    let summaries: anyhow::Result<Vec<_>> = rows.iter().map(|row| campaign_summary(row, store)).collect();
    value(json!({ "campaigns": summaries? }))
}

fn campaign(reader: &mut Reader, request: &ApiRequest) -> Result<Value, PageError> {
    let row = reader.store().campaigns().get(&request.name)?;
    let row = row.ok_or_else(|| PageError::not_found("there is no such campaign"))?;
    value(campaign_status(&row, None, reader.store())?)
}
