//! The files of a run: their list, and downloads. A file is named by the store or is one of the coordinator's documents, and a browser
//! stores it instead of showing it, because a device wrote it.

use std::{fs::File, io, path::PathBuf};

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_util::stream;
use maud::{Markup, html};
use regatta_fsutil::regular_file;
use regatta_types::{RunId, StreamName, documents::document_name};
use tokio::io::AsyncReadExt as _;

use crate::{
    dashboard::page_error::PageError,
    store::{RunRow, Store, StreamRow},
    tables,
    workspace::Workspace,
};

/// The size of a part of a download in bytes.
const PART: usize = 64 * 1024;

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
                            @if stream.whole { a href=(link(stream.name.as_str())) download { (stream.name) } } @else { (stream.name) }
                        }
                        td .number role="cell" data-title="Bytes" { (stream.committed) }
                        td role="cell" data-title="State" { (tables::stream_state(stream)) }
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

/// A file of a run that can be sent.
pub(in crate::dashboard) struct RunFile {
    name: String,
    length: u64,
    file: File,
}

/// Opens a file of a run.
///
/// # Errors
/// Returns [`PageError`] when the run has no such complete file.
pub(in crate::dashboard) fn run_file(
    run: RunId,
    name: &str,
    store: &Store,
    workspace: &Workspace,
) -> Result<RunFile, PageError> {
    let missing = || PageError::not_found("the run has no such file");
    let path = path(run, name, store, workspace)?.ok_or_else(missing)?;
    let open = || -> io::Result<RunFile> {
        let file = regular_file::open(&path)?;
        Ok(RunFile {
            name: name.to_owned(),
            length: file.metadata()?.len(),
            file,
        })
    };
    open().map_err(|_| missing())
}

/// The path of a file that the store knows as complete, or of a document. Every name in a path is one of these, and not a user's.
fn path(run: RunId, name: &str, store: &Store, workspace: &Workspace) -> Result<Option<PathBuf>, PageError> {
    let directory = workspace.run(run);
    if DOCUMENTS.iter().any(|(known, _)| *known == name) {
        return Ok(Some(directory.path().join(name)));
    }
    let Ok(name) = name.parse::<StreamName>() else {
        return Ok(None);
    };
    let is_complete = |stream: &StreamRow| stream.whole && stream.name == name;
    let is_known = store.streams(run)?.iter().any(is_complete);
    Ok(is_known.then(|| directory.file(&name)))
}

impl RunFile {
    /// Sends the file. The rules for browsers in [`crate::dashboard::protection`] forbid guessing its type.
    pub(in crate::dashboard) fn into_response(self) -> Response {
        let file = tokio::fs::File::from_std(self.file).take(self.length);
        let parts = stream::unfold(file, |mut file| async move {
            let mut part = vec![0; PART];
            match file.read(&mut part).await {
                Ok(0) => None,
                Ok(read) => {
                    part.truncate(read);
                    Some((Ok(Bytes::from(part)), file))
                }
                Err(error) => Some((Err(error), file)),
            }
        });
        let mut response = Body::from_stream(parts).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        );
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(self.length));
        // The name has letters, digits, dots, dashes and underscores only.
        let disposition = format!("attachment; filename=\"{}\"", self.name);
        if let Ok(disposition) = HeaderValue::from_str(&disposition) {
            headers.insert(header::CONTENT_DISPOSITION, disposition);
        }
        response
    }
}
