//! A campaign's counts and its remaining time in words.

use crate::documents::{CampaignStatus, CampaignSummary};

/// Formats the number of cells by state.
pub fn campaign_counts(summary: &CampaignSummary) -> String {
    let counts = [
        (summary.good, "good"),
        (summary.running, "running"),
        (summary.waiting, "waiting"),
        (summary.failed, "failed"),
        (summary.skipped, "skipped"),
    ];
    let parts = counts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, word)| format!("{count} {word}")).collect();
    format!("{}: {}", summary.cells, parts.join(", "))
}

/// Formats the time that a campaign still takes.
pub fn campaign_time_left(status: &CampaignStatus) -> String {
    let Some(left) = &status.time_left else {
        return "unknown".to_owned();
    };
    let basis = match left.from_attempts {
        1 => "1 good attempt".to_owned(),
        attempts => format!("{attempts} good attempts"),
    };
    if left.cells_without_basis > 0 {
        return format!(
            "more than {}, from {basis}; {} cells have no estimate yet",
            rough_duration(left.low_seconds),
            left.cells_without_basis
        );
    }
    format!(
        "about {} ({} to {}), from {basis}",
        rough_duration(left.seconds),
        rough_duration(left.low_seconds),
        rough_duration(left.high_seconds)
    )
}

/// Formats an expected time, which is not known to the second.
pub fn rough_duration(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match whole {
        0..120 => format!("{whole} s"),
        120..7_200 => format!("{} min", whole.div_ceil(60)),
        _ => format!("{} h {} min", whole / 3_600, whole % 3_600 / 60),
    }
}
