//! The live page: the lab's activity, in a browser on this machine. Pages are complete without JavaScript; a small script replaces what
//! changes. On loopback everybody reads; elsewhere `access` requires TLS and a login. Operators change the lab by a few actions.
//!
//! ```text
//! GET /                  the fleet; `sort`, `order`, `text`, `state`, `health` and `label` select and sort
//! GET /device/ID         a device
//! GET /runs              the runs, newest first; `device`, `benchmark`, `verdict` and `before` select
//! GET /run/ID            a run
//! GET /run/ID/file/NAME  one of its files, as a download
//! GET /campaigns         the campaigns
//! GET /campaign/NAME     a campaign with the state of each cell
//! GET /compare           two selections of runs, compared; `a`, `b`, `benchmark`, `scenario`, `since`, `short`, `simulated`, `floor`
//! GET /history           the figures of devices over time; `runs`, and the conditions of /compare
//! GET /power             the power sessions
//! GET /power/ID          a power session
//! GET /power/ID/file/... one of its files, as a download
//! GET /submission        what the runs are ready for, and the staged trees
//! GET /submission/TREE   the strict check of a staged tree
//! GET /live/...          fleet, runs and campaigns as server-sent events; the fleet's is /live/fleet
//! GET /api/v1/...        devices, runs, campaigns and comparisons as JSON; /api/v1/openapi.json describes them
//! GET /metrics           the lab for Prometheus; /metrics/grafana.json is a dashboard of it
//! GET /static/...        style, script and icon
//! GET /login             the form; POST begins a session, POST /logout ends it
//! POST /device/ID/...    drain, resume
//! POST /campaign/NAME/.. pause, resume, retry
//! ```

mod access;
mod action_forms;
mod actions;
mod api;
mod campaign_list_page;
mod campaign_page;
mod compare_page;
mod compare_query;
mod comparison_form;
mod computed_pages;
mod condition_query;
mod connections;
mod device_page;
mod download;
mod fleet_page;
mod fleet_query;
mod fleet_snapshot;
mod forest_plot;
mod history_page;
mod history_query;
mod hub;
mod layout;
mod live;
mod metrics;
mod outside_text;
mod page_error;
mod page_work;
mod pieces;
mod plain_http;
mod plot;
mod power_list_page;
mod power_page;
mod protection;
mod query_words;
mod recent_results;
mod route_table;
mod routes;
mod run_list_page;
mod run_list_query;
mod run_page;
mod server;
mod static_files;
mod submission_page;
#[cfg(test)]
mod tests;
mod view;
mod work_queues;

pub use access::{PageTokenError, issue as issue_page_token};
pub use fleet_page::selected;
pub use fleet_query::{FleetQuery, SortKey};
pub use fleet_snapshot::{FleetDevice, FleetSnapshot};
pub use server::{PageServer, PageServerError, PageTls};

/// Returns every route of the live page: method, path, and permitted use (`everybody`, `reader` or `operator`).
#[must_use]
pub fn page_routes() -> Vec<[String; 3]> {
    let (_, table) = routes::all_routes();
    let rows = table.rows();
    rows.into_iter().map(|row| row.map(str::to_owned)).collect()
}
