//! Findings about heat, throttling and over-current.

use super::super::report::{Examination, Finding, Severity};

/// Distance in thousandths of a degree from a zone's trip point, below which a run of ten minutes will reach it.
const THERMAL_MARGIN: i64 = 10_000;

pub(super) fn heat(seen: &Examination) -> Option<Finding> {
    let margin = |zone: &&crate::sensors::ThermalZone| {
        Some(zone.slows_at_millicelsius?.saturating_sub(zone.millicelsius))
    };
    let hottest = seen
        .sensors
        .thermal
        .iter()
        .filter(|zone| margin(zone).is_some_and(|margin| margin < THERMAL_MARGIN))
        .min_by_key(margin)?;
    Finding::when(
        true,
        "heat",
        Severity::Unfit,
        || {
            let degrees = |millicelsius: i64| millicelsius / 1_000;
            let limit = hottest.slows_at_millicelsius.map_or(0, degrees);
            format!(
                "{} is at {} C, and the board slows down at {limit} C",
                hottest.zone,
                degrees(hottest.millicelsius)
            )
        },
        "a board that slows down during a run measures its cooling",
        seen.is_jetson()
            .then_some("sudo jetson_clocks --fan    # then let it cool down"),
    )
}

pub(super) fn slowed_down(seen: &Examination) -> Option<Finding> {
    Finding::when(
        !seen.sensors.slowed_by.is_empty(),
        "slowed-down",
        Severity::Unfit,
        || {
            format!(
                "the board is slowing itself down ({})",
                seen.sensors.slowed_by.join(", ")
            )
        },
        "it is too hot or draws too much power, which changes every measurement",
        seen.is_jetson()
            .then_some("sudo jetson_clocks --fan    # then let it cool down"),
    )
}

/// A rail near its limit when idle will exceed it under load.
pub(super) fn current_limit(seen: &Examination) -> Option<Finding> {
    let rails = seen.sensors.rails.iter();
    let (rail, now, limit) = rails
        .filter_map(|rail| {
            Some((
                rail,
                rail.milliamperes?,
                rail.limit_milliamperes.filter(|&limit| limit > 0)?,
            ))
        })
        .find(|(_, now, limit)| now.saturating_mul(10) >= limit.saturating_mul(9))?;
    Finding::when(
        true,
        "current-limit",
        Severity::Warning,
        || {
            format!(
                "{} draws {now} mA, and the board is slowed down at {limit} mA",
                rail.label
            )
        },
        "a run will exceed the limit; use a stronger supply, or a power mode that needs less",
        None,
    )
}

pub(super) fn over_current(seen: &Examination) -> Option<Finding> {
    let events = seen.sensors.over_current_events?;
    Finding::when(
        events > 0,
        "over-current",
        Severity::Unfit,
        || format!("the power supply was too weak {events} times since boot"),
        "the board halves its clocks at each of these events; use a stronger supply, or a power mode that needs less",
        None,
    )
}

pub(super) fn fan_profile(seen: &Examination) -> Option<Finding> {
    let profile = seen.sensors.fan_profile.as_deref()?;
    let is_full = seen.sensors.fans.iter().any(|fan| fan.pwm == Some(255));
    Finding::when(
        profile == "quiet" && !is_full,
        "fan-profile",
        Severity::Note,
        || "the fan follows the profile quiet".to_owned(),
        "it lets the board get hot in a long run; a run with the state MaxP sets the fan",
        Some("sudo jetson_clocks --fan"),
    )
}

pub(super) fn no_helper(seen: &Examination) -> Option<Finding> {
    Finding::when(
        seen.is_jetson() && !seen.power.state_helper,
        "no-state-helper",
        Severity::Note,
        || "regatta-state, which sets power mode, clocks and fan, is not installed".to_owned(),
        "runs measure the board as it is; the regatta-agent package installs it",
        None,
    )
}
