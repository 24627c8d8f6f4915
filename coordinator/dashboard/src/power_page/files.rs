//! The files of a power session with the hashes of its record, and which of them can be downloaded: those of the record.

use std::path::{Component, Path};

use maud::{Markup, html};
use regatta_types::documents::PowerSessionRecord;

use crate::{
    download::Download,
    outside_text::{NAME, path_segment, shown},
    page_error::PageError,
};
use regatta_lab_power::read_session_record;
use regatta_lab_store::{Store, workspace::Workspace};

/// The number of files that are listed.
const MAX: usize = 200;

/// Renders the list of files.
pub(super) fn list(session: &str, record: &PowerSessionRecord) -> Markup {
    let files = &record.sha256;
    if files.is_empty() {
        return html! { p { "The session left no files." } };
    }
    let link = |path: &str| {
        let segments: Vec<String> = path.split('/').map(path_segment).collect();
        format!("/power/{session}/file/{}", segments.join("/"))
    };
    html! {
        details open[files.len() <= 40] {
            summary { @if files.len() == 1 { "1 file" } @else { (files.len()) " files" } " with SHA-256" }
            table .small role="table" aria-label="Files" {
                thead role="rowgroup" { tr role="row" {
                    th role="columnheader" scope="col" { "File" }
                    th role="columnheader" scope="col" { "SHA-256" }
                } }
                tbody role="rowgroup" {
                    @for (path, sha256) in files.iter().take(MAX) {
                        tr role="row" {
                            th role="rowheader" scope="row" data-title="File" {
                                // The official programs have short names; another one can be read on the disk.
                                @if path.chars().count() <= NAME { a href=(link(path)) download { (shown(path, NAME)) } } @else { (shown(path, NAME)) }
                            }
                            td role="cell" data-title="SHA-256" { code { (shown(sha256, NAME)) } }
                        }
                    }
                }
            }
        }
        @if files.len() > MAX { p .note { (files.len() - MAX) " more are not listed." } }
    }
}

/// Opens a file of a session.
///
/// # Errors
/// Returns [`PageError`] when the record of the session has no such file.
pub(crate) fn file(
    session: &str,
    path: &str,
    store: &Store,
    workspace: &Workspace,
) -> Result<Download, PageError> {
    let missing = || PageError::not_found("the session has no such file");
    let row = store.power_sessions().get(session)?.ok_or_else(missing)?;
    let directory = workspace.power_session(&row.id);
    let record = read_session_record(&directory)?.ok_or_else(missing)?;
    let is_below = Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !is_below || !record.sha256.contains_key(path) {
        return Err(missing());
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    Download::open(&directory.join("session").join(path), name).map_err(|_| missing())
}
