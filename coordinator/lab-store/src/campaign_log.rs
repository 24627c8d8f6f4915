//! The users' requests to campaigns: an append-only log. What the scheduler does is in cells and attempts.

use regatta_types::documents::EndCause;
use serde::Serialize;

use super::{CampaignState, Result, Store, now, values};
use crate::database::params;

/// A user's request to a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CampaignChange {
    /// No new attempt begins.
    Paused,
    /// Attempts begin again.
    Resumed,
    /// The campaign ends with its runs.
    Aborted,
    /// The cells that failed by this cause are tried again.
    Retried(EndCause),
    /// The skipped cells wait again.
    RetriedSkipped,
    /// No attempt begins after another time than before. `None` removes the deadline.
    Deadline(Option<String>),
}

/// A request as it is logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CampaignLogEntry {
    /// The time, RFC 3339 UTC.
    pub at: String,
    /// The requested change.
    pub change: String,
    /// The cause of the cells that are tried again.
    pub cause: Option<EndCause>,
    /// The time to which the deadline was moved, RFC 3339 UTC.
    pub deadline: Option<String>,
    /// The user who requested it.
    pub by: String,
}

impl CampaignChange {
    /// Returns the change to a state.
    pub(super) const fn to(state: CampaignState) -> Self {
        match state {
            CampaignState::Running => Self::Resumed,
            CampaignState::Paused => Self::Paused,
            CampaignState::Aborted => Self::Aborted,
        }
    }

    /// Returns the change in words.
    const fn words(&self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::Aborted => "aborted",
            Self::Retried(_) | Self::RetriedSkipped => "retried",
            Self::Deadline(Some(_)) => "deadline moved",
            Self::Deadline(None) => "deadline removed",
        }
    }
}

/// The requests that users made to campaigns.
#[derive(Debug)]
pub struct CampaignLog<'a> {
    pub(super) store: &'a Store,
}

impl CampaignLog<'_> {
    /// Logs a change of a campaign. Call this in the transaction of the change.
    pub(super) fn add(&self, campaign: &str, change: CampaignChange, by: &str) -> Result<()> {
        let cause = match &change {
            CampaignChange::Retried(cause) => Some(cause.as_str()),
            _ => None,
        };
        let deadline = match &change {
            CampaignChange::Deadline(until) => until.as_deref(),
            _ => None,
        };
        self.store.execute(
            "INSERT INTO campaign_log (campaign, at, change, cause, changed_by, deadline)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![campaign, now(), change.words(), cause, by, deadline],
        )?;
        Ok(())
    }

    /// Returns the users' requests to a campaign, oldest first.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn of_campaign(&self, campaign: &str) -> Result<Vec<CampaignLogEntry>> {
        self.store.rows(
            "SELECT * FROM campaign_log WHERE campaign = ?1 ORDER BY number",
            params![campaign],
            |row| {
                Ok(CampaignLogEntry {
                    at: row.get("at")?,
                    change: row.get("change")?,
                    cause: values::optional_parsed(row, "cause")?,
                    deadline: row.get("deadline")?,
                    by: row.get("changed_by")?,
                })
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_as_they_were_written() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("regatta.db")).unwrap();
        for change in [CampaignChange::Paused, CampaignChange::Retried(EndCause::Device)] {
            store.campaign_log().add("night", change, "anna").unwrap();
        }
        let log = store.campaign_log().of_campaign("night").unwrap();
        let words: Vec<_> = log
            .iter()
            .map(|entry| (entry.change.as_str(), entry.cause, entry.by.as_str()))
            .collect();
        assert_eq!(
            words,
            [
                ("paused", None, "anna"),
                ("retried", Some(EndCause::Device), "anna")
            ]
        );
        assert!(store.campaign_log().of_campaign("day").unwrap().is_empty());
        for statement in [
            "DELETE FROM campaign_log",
            "UPDATE campaign_log SET changed_by = 'nobody'",
        ] {
            assert!(store.execute(statement, params![]).is_err(), "{statement}");
        }
    }
}
