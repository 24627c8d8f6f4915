//! Tables of power meters.

use super::{cell, table};
use crate::store::MeterRow;

/// Formats meters, one line each.
pub(crate) fn meters(rows: &[MeterRow]) -> String {
    if rows.is_empty() {
        return "no meters: `regatta meter add` adds one, `regatta power simulate` needs none".to_owned();
    }
    let mut table = table(["name", "type", "at", "port", "NTP", "used by"]);
    for row in rows {
        let settings = &row.settings;
        let used_by = match &row.lease {
            None => "-".to_owned(),
            Some(lease) if lease.is_stale() => {
                format!("nobody: session {} ended without a word", lease.session)
            }
            Some(lease) => format!("session {}, process {}", lease.session, lease.pid()),
        };
        table.add_row([
            cell(&row.name),
            cell(settings.device_type),
            cell(&settings.device_port),
            cell(settings.port),
            cell(&settings.ntp),
            cell(used_by),
        ]);
    }
    table.trim_fmt()
}
