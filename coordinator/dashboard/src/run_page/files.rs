//! The files of a run: their list, and which of them can be downloaded: those that the store names, and the coordinator's documents.

use std::path::PathBuf;

use maud::{Markup, html};
use regatta_types::{RunId, StreamName, documents::document_name};

use crate::{download::Download, page_error::PageError};
use regatta_lab_store::{RunRow, Store, StreamRow, workspace::Workspace};
use regatta_lab_views::wording;

/// The coordinator's documents in a run's directory.
const DOCUMENTS: [(&str, &str); 3] = [
    (document_name::SPEC, "the request, as it was sent"),
    (document_name::RECORD, "the coordinator's record"),
    (document_name::DEVICE_KEY, "the device's public key"),
];

/// Renders the list of files.
pub(super) fn list(row: &RunRow, streams: &[StreamRow]) -> Markup {
    let link = |name: &str| format!("/run/{}/file/{name}", row.id);
    html! {
        table .small role="table" aria-label="Files" {
            thead role="rowgroup" { tr role="row" {
                @for title in ["File", "Bytes", "State"] {
                    th .number[title == "Bytes"] role="columnheader" scope="col" { (title) }
                }
            } }
            tbody role="rowgroup" {
                @for stream in streams {
                    tr role="row" {
                        th role="rowheader" scope="row" data-title="File" {
                            @if stream.is_complete { a href=(link(stream.name.as_str())) download { (stream.name) } } @else { (stream.name) }
                        }
                        td .number role="cell" data-title="Bytes" { (stream.committed) }
                        td role="cell" data-title="State" { (wording::stream_state(stream)) }
                    }
                }
                @if row.recorded.is_some() {
                    @for (name, what) in DOCUMENTS {
                        tr role="row" {
                            th role="rowheader" scope="row" data-title="File" { a href=(link(name)) download { (name) } }
                            td .number role="cell" data-title="Bytes" {}
                            td role="cell" data-title="State" { (what) }
                        }
                    }
                }
            }
        }
    }
}

/// Opens a file of a run.
///
/// # Errors
/// Returns [`PageError`] when the run has no such complete file.
pub(crate) fn run_file(
    run: RunId,
    name: &str,
    store: &Store,
    workspace: &Workspace,
) -> Result<Download, PageError> {
    let missing = || PageError::not_found("the run has no such file");
    let path = path(run, name, store, workspace)?.ok_or_else(missing)?;
    Download::open(&path, name).map_err(|_| missing())
}

/// Returns the path of a file that the store knows as complete, or of a document. Every name in a path is one of these, and not a user's.
fn path(run: RunId, name: &str, store: &Store, workspace: &Workspace) -> Result<Option<PathBuf>, PageError> {
    let directory = workspace.run(run);
    if DOCUMENTS.iter().any(|(known, _)| *known == name) {
        return Ok(Some(directory.path().join(name)));
    }
    let Ok(name) = name.parse::<StreamName>() else {
        return Ok(None);
    };
    let is_complete = |stream: &StreamRow| stream.is_complete && stream.name == name;
    let is_known = store.streams().of_run(run)?.iter().any(is_complete);
    Ok(is_known.then(|| directory.file(&name)))
}
