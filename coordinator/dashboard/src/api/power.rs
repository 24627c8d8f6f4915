//! The operations on power sessions.

use serde_json::Value;

use super::operation::{ApiRequest, DocumentReader, Operation};
use crate::{page_error::PageError, view::Reader};
use regatta_lab_power::read_session_record;
use regatta_lab_views::documents;

pub(super) const OPERATIONS: [Operation; 2] = [
    Operation {
        path: "/api/v1/power-sessions",
        summary: "Every power session, as `regatta power list` prints them.",
        query: &[],
        schema: "powerSessions",
        read: DocumentReader::Stored(sessions),
    },
    Operation {
        path: "/api/v1/power-sessions/{session}",
        summary: "A power session with its record, as `regatta power show` prints it.",
        query: &[],
        schema: "shownPowerSession",
        read: DocumentReader::Stored(session),
    },
];

fn sessions(reader: &mut Reader, _: &ApiRequest) -> Result<Value, PageError> {
    Ok(documents::power_sessions(&reader.store().power_sessions().all()?))
}

fn session(reader: &mut Reader, request: &ApiRequest) -> Result<Value, PageError> {
    let row = reader.store().power_sessions().get(&request.name)?;
    let row = row.ok_or_else(|| PageError::not_found("there is no such power session"))?;
    let record = read_session_record(&reader.workspace().power_session(&row.id))?;
    Ok(documents::shown_power_session(&row, record.as_ref()))
}
