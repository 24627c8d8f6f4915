//! Tables of power meters.

use super::{cell, table};
use regatta_lab_store::{LeaseState, MeterRow};

/// Formats meters, one line each.
pub(crate) fn meters(rows: &[MeterRow]) -> String {
    if rows.is_empty() {
        return "no meters: `regatta meter add` adds one, `regatta power simulate` needs none".to_owned();
    }
    let mut table = table(["name", "director", "type", "at", "port", "NTP", "used by"]);
    for row in rows {
        let settings = &row.settings;
        let used_by = match &row.lease {
            None => "-".to_owned(),
            Some(lease) => match lease.state() {
                LeaseState::Stale => format!("nobody: session {} ended without a result", lease.session),
                LeaseState::Held => format!("session {}, process {}", lease.session, lease.pid()),
                LeaseState::Unknown => format!("session {} elsewhere", lease.session),
            },
        };
        table.add_row([
            cell(&row.name),
            cell(settings.director.as_deref().unwrap_or("this machine")),
            cell(settings.device_type),
            cell(&settings.device_port),
            cell(settings.port),
            cell(&settings.ntp),
            cell(used_by),
        ]);
    }
    table.trim_fmt()
}
