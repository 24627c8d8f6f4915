//! The time zone of printed times: UTC, until a command that prints for a person sets that of this machine.

use std::sync::OnceLock;

use jiff::{Timestamp, Zoned, tz::TimeZone};

static ZONE: OnceLock<TimeZone> = OnceLock::new();

/// Formats times in the zone of this machine (`TZ`) for the rest of the process. The first time that is formatted fixes the zone.
pub fn use_local_time() {
    ZONE.get_or_init(TimeZone::system);
}

/// Returns the zone.
pub fn time_zone() -> &'static TimeZone {
    ZONE.get_or_init(|| TimeZone::UTC)
}

/// Returns the abbreviation of the zone at a time, such as `UTC` or `CET`.
pub fn zone_name(at: Timestamp) -> String {
    zoned(at).strftime("%Z").to_string()
}

pub(super) fn zoned(at: Timestamp) -> Zoned {
    at.to_zoned(time_zone().clone())
}
