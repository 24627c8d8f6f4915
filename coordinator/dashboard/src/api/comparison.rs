//! The operations that compute from many runs: comparisons and histories, by the same code as their pages and commands.

use serde::Serialize;
use serde_json::Value;

use super::operation::{ApiRequest, DocumentReader, Operation, Parameter, value};
use crate::{
    compare_page, compare_query::CompareQuery, history_page, history_query::HistoryQuery,
    page_error::PageError,
};
use regatta_lab_store::{lab_error::LabError, workspace::Workspace};

/// The conditions that comparisons and histories have in common.
const BENCHMARK: Parameter = Parameter::optional("benchmark", "the benchmark's name");
const SCENARIO: Parameter = Parameter::optional("scenario", "SingleStream, MultiStream, Server or Offline");
const SINCE: Parameter =
    Parameter::optional("since", "only runs requested since then: `7d` ago, or a UTC date");
const SHORT: Parameter = Parameter::optional(
    "short",
    "`1` includes runs that are shorter than the round requires",
);
const SIMULATED: Parameter =
    Parameter::optional("simulated", "`1` includes runs of engines that execute no model");

pub(super) const OPERATIONS: [Operation; 2] = [
    Operation {
        path: "/api/v1/comparison",
        summary: "Two selections of runs, compared as `regatta compare` does.",
        query: &[
            Parameter::required("a", "the selection of the base"),
            Parameter::required("b", "the selection that is compared with it"),
            BENCHMARK,
            SCENARIO,
            SINCE,
            SHORT,
            SIMULATED,
            Parameter::optional("floor", "the least A/A floor in percent"),
        ],
        schema: "comparison",
        read: DocumentReader::Computed(comparison),
    },
    Operation {
        path: "/api/v1/histories",
        summary: "The figures of devices over time with their change points, as `regatta history` prints them.",
        query: &[
            Parameter::optional("runs", "the selection of runs; without one all"),
            BENCHMARK,
            SCENARIO,
            SINCE,
            SHORT,
            SIMULATED,
        ],
        schema: "history",
        read: DocumentReader::Computed(histories),
    },
];

fn comparison(workspace: &Workspace, request: &ApiRequest) -> Result<Value, PageError> {
    let query = CompareQuery::parse(&request.query).map_err(PageError::bad_request)?;
    document(&compare_page::compared(&query, workspace))
}

fn histories(workspace: &Workspace, request: &ApiRequest) -> Result<Value, PageError> {
    let query = HistoryQuery::parse(&request.query).map_err(PageError::bad_request)?;
    document(&history_page::computed(&query, workspace))
}

fn document(result: &Result<impl Serialize, LabError>) -> Result<Value, PageError> {
    value(result.as_ref()?)
}
