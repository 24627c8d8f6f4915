//! The table of the users' requests to a campaign.

use super::plain;
use regatta_lab_store::CampaignLogEntry;
use regatta_lab_views::wording;

/// Formats the log of a campaign's requests, oldest first.
pub(crate) fn campaign_log(name: &str, log: &[CampaignLogEntry]) -> String {
    if log.is_empty() {
        return format!("{name}: nobody paused, resumed, aborted or retried it or moved its deadline");
    }
    let lines = log.iter().map(|entry| {
        [
            wording::time(&entry.at),
            entry.deadline.as_ref().map_or_else(
                || entry.change.clone(),
                |until| format!("{} to {}", entry.change, wording::time(until)),
            ),
            entry
                .cause
                .map_or_else(String::new, |cause| cause.as_str().to_owned()),
            entry.by.clone(),
        ]
    });
    plain(["time", "request", "cause", "by"], lines)
}
