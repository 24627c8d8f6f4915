//! Reads Regatta's own types from columns. A value that does not parse is an error that names its column, not a default.

use std::str::FromStr;

use regatta_types::documents::RunPhase;

use super::{
    Result,
    database::{DatabaseError, Row},
    error::StoreError,
};

/// Parses a text column.
pub(super) fn parsed<T>(row: &Row<'_>, column: &str) -> Result<T>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let text: String = row.get(column)?;
    text.parse().map_err(|error| unreadable(column, error))
}

/// Parses a text column that may be NULL.
pub(super) fn optional_parsed<T>(row: &Row<'_>, column: &str) -> Result<Option<T>>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let text: Option<String> = row.get(column)?;
    text.map(|text| text.parse())
        .transpose()
        .map_err(|error| unreadable(column, error))
}

/// Parses a JSON text column.
pub(super) fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| unreadable(column, error))
}

/// Writes a value for a JSON text column.
pub(super) fn to_json<T: serde::Serialize>(value: &T) -> Result<String> {
    Ok(serde_json::to_string(value).map_err(DatabaseError::from)?)
}

/// Parses a JSON text column that may be NULL.
pub(super) fn optional_json<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    column: &str,
) -> Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(|error| unreadable(column, error))
}

/// Parses a run's phase from the word that users see.
pub(super) fn phase(row: &Row<'_>, column: &str) -> Result<RunPhase> {
    let text: String = row.get(column)?;
    serde_json::from_value(serde_json::Value::String(text)).map_err(|error| unreadable(column, error))
}

/// Reads an unsigned integer of at most 63 bits.
pub(super) fn unsigned(row: &Row<'_>, column: &str) -> Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|error| unreadable(column, error))
}

/// Reads an unsigned integer of at most 63 bits that may be NULL.
pub(super) fn optional_unsigned(row: &Row<'_>, column: &str) -> Result<Option<u64>> {
    let value: Option<i64> = row.get(column)?;
    value
        .map(u64::try_from)
        .transpose()
        .map_err(|error| unreadable(column, error))
}

/// Converts an unsigned number to SQLite's signed integer. Values above 63 bits are clamped and do not occur in offsets or revisions.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unreadable(column: &str, error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    DatabaseError::column(column, error).into()
}
