//! The cells of campaigns: one combination and repetition each. A combination is a request with the devices that may take it.

use regatta_types::{DeviceId, documents::EndCause};

use super::{CampaignChange, CampaignState, CellState, Placement, Result, RunRequest, Store, values};
use crate::database::{Row, params};

/// A request of a campaign, with the devices that may take it.
#[derive(Debug, Clone, PartialEq)]
pub struct Combination {
    /// Its number in the campaign, from 0.
    pub number: u64,
    pub request: RunRequest,
    /// The name of the settings' variant.
    pub variant: Option<String>,
    /// The compliance test, such as TEST01, if its cells are audits. `request` is then that of the audited runs.
    pub audit: Option<String>,
    /// The meter, if its cells are power sessions. `request` is then that of the runs that they follow.
    pub meter: Option<String>,
    /// The device that takes its cells.
    pub placement: Placement,
    /// Higher ones come first.
    pub priority: i64,
    /// The devices that may take it.
    pub devices: Vec<DeviceId>,
}

/// The cells whose runs an audit compares with, or that a power session follows. Both are the same cell in mode SubmissionRun, and of a
/// power session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditedCells {
    /// The number of the performance run's cell.
    pub performance: u64,
    /// The number of the accuracy run's cell.
    pub accuracy: u64,
}

/// A cell of a campaign that starts. Its number and position follow from its place in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCell {
    /// Its number in the campaign, from 1, in the order of the plan.
    pub number: u64,
    pub combination: u64,
    /// Its repetition, from 1.
    pub repetition: u64,
    /// The only device that may take it.
    pub device: Option<DeviceId>,
    /// The cells that it audits or follows. It waits until both are good.
    pub audited: Option<AuditedCells>,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellRow {
    /// Its number in the campaign, from 1.
    pub number: u64,
    /// Its place in the campaign's order, from 0.
    pub position: u64,
    pub combination: u64,
    /// Its repetition, from 1.
    pub repetition: u64,
    /// The only device that may take it.
    pub device: Option<DeviceId>,
    pub state: CellState,
    /// The cause of its failure.
    pub cause: Option<EndCause>,
    /// The same as a sentence, also for a skipped cell.
    pub reason: Option<String>,
    /// The number of its last attempt before a user requested more of them.
    pub counted_from: u64,
    /// The cells that it audits or follows. It waits until both are good.
    pub audited: Option<AuditedCells>,
}

/// The reason why a waiting cell fails without a further attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellFailure {
    /// Its number.
    pub cell: u64,
    pub cause: EndCause,
    /// The same as a sentence.
    pub reason: String,
}

fn audited(row: &Row<'_>) -> Result<Option<AuditedCells>> {
    let number = |column| -> Result<Option<u64>> {
        let value: Option<i64> = row.get(column)?;
        Ok(value.and_then(|value| u64::try_from(value).ok()))
    };
    let (performance, accuracy) = (number("audited_performance")?, number("audited_accuracy")?);
    Ok(performance
        .zip(accuracy)
        .map(|(performance, accuracy)| AuditedCells {
            performance,
            accuracy,
        }))
}

fn cell(row: &Row<'_>) -> Result<CellRow> {
    Ok(CellRow {
        number: values::unsigned(row, "number")?,
        position: values::unsigned(row, "position")?,
        combination: values::unsigned(row, "combination")?,
        repetition: values::unsigned(row, "repetition")?,
        device: values::optional_parsed(row, "device")?,
        state: values::parsed(row, "state")?,
        cause: values::optional_parsed(row, "cause")?,
        reason: row.get("reason")?,
        counted_from: values::unsigned(row, "counted_from")?,
        audited: audited(row)?,
    })
}

/// The cells of campaigns, and the combinations of settings that they repeat.
#[derive(Debug)]
pub struct Cells<'a> {
    pub(super) store: &'a Store,
}

impl Cells<'_> {
    pub(super) fn add_combination(&self, campaign: &str, new: &Combination) -> Result<()> {
        let devices = values::to_json(&new.devices)?;
        let request = values::to_json(&new.request)?;
        self.store.execute(
            "INSERT INTO combinations (campaign, number, request, variant, placement, priority, devices, audit, meter)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)", params![
                campaign,
                values::signed(new.number),
                request,
                new.variant,
                new.placement.as_str(),
                new.priority,
                devices,
                new.audit,
                new.meter
            ])?;
        Ok(())
    }

    pub(super) fn add(&self, campaign: &str, position: usize, new: &NewCell) -> Result<()> {
        self.store.execute(
            "INSERT INTO cells (campaign, number, combination, repetition, device, position, state, audited_performance,
             audited_accuracy) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                campaign,
                values::signed(new.number),
                values::signed(new.combination),
                values::signed(new.repetition),
                new.device.as_ref().map(DeviceId::as_str),
                values::signed(position as u64),
                CellState::Waiting.as_str(),
                new.audited.map(|cells| values::signed(cells.performance)),
                new.audited.map(|cells| values::signed(cells.accuracy))
            ],
        )?;
        Ok(())
    }

    /// Returns the combinations of a campaign, by number.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn combinations(&self, campaign: &str) -> Result<Vec<Combination>> {
        self.store.rows(
            "SELECT * FROM combinations WHERE campaign = ?1 ORDER BY number",
            params![campaign],
            |row| {
                Ok(Combination {
                    number: values::unsigned(row, "number")?,
                    request: values::json(row, "request")?,
                    variant: row.get("variant")?,
                    placement: values::parsed(row, "placement")?,
                    priority: row.get("priority")?,
                    devices: values::json(row, "devices")?,
                    audit: row.get("audit")?,
                    meter: row.get("meter")?,
                })
            },
        )
    }

    /// Returns the cells of a campaign, in the order that its seed fixes.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn of_campaign(&self, campaign: &str) -> Result<Vec<CellRow>> {
        self.store.rows(
            "SELECT * FROM cells WHERE campaign = ?1 ORDER BY position",
            params![campaign],
            cell,
        )
    }

    /// Returns the number of a campaign's cells in each state, in the order of [`CellState::ALL`].
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn count_by_state(&self, campaign: &str) -> Result<Vec<(CellState, u64)>> {
        let mut counts = Vec::with_capacity(CellState::ALL.len());
        for &state in CellState::ALL {
            let count = self.store.row(
                "SELECT count(*) AS count FROM cells WHERE campaign = ?1 AND state = ?2",
                params![campaign, state.as_str()],
                |row| values::unsigned(row, "count"),
            )?;
            counts.push((state, count));
        }
        Ok(counts)
    }

    /// Returns the cells that changed after a revision, in their order. `None` selects every cell.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn changed(&self, campaign: &str, after: Option<u64>) -> Result<Vec<CellRow>> {
        let Some(after) = after else {
            return self.of_campaign(campaign);
        };
        self.store.rows(
            "SELECT * FROM cells WHERE campaign = ?1 AND revision > ?2 ORDER BY position",
            params![campaign, values::signed(after)],
            cell,
        )
    }

    /// Fails waiting cells without a further attempt, all or none.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn fail(&self, campaign: &str, failures: &[CellFailure]) -> Result<()> {
        self.store.all_or_nothing(|store| {
            for failure in failures {
                let (cause, reason) = (Some(failure.cause), Some(failure.reason.as_str()));
                store
                    .cells()
                    .set_state(campaign, failure.cell, CellState::Failed, cause, reason)?;
                store.campaigns().mark_cell_changed(campaign, failure.cell)?;
            }
            Ok(())
        })
    }

    /// Skips every waiting cell of a campaign that has no open attempt. Returns how many.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn skip_waiting(&self, campaign: &str, reason: &str) -> Result<usize> {
        self.store.all_or_nothing(|store| {
            let skipped = store.execute(
                "UPDATE cells SET state = ?2, reason = ?3, revision = (SELECT revision + 1 FROM campaigns WHERE name = ?1)
                 WHERE campaign = ?1 AND state = ?4 AND NOT EXISTS (
                     SELECT 1 FROM attempts WHERE attempts.campaign = cells.campaign AND attempts.cell = cells.number
                         AND attempts.ended IS NULL)", params![campaign, CellState::Skipped.as_str(), reason, CellState::Waiting.as_str()])?;
            if skipped > 0 {
                store.campaigns().increment_revision(campaign)?;
            }
            Ok(skipped)
        })
    }

    /// Skips the waiting audits and power sessions of cells that failed or were skipped.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn skip_audits_of_failed(&self, campaign: &str) -> Result<()> {
        /// The cells whose runs it needs and does not get.
        const LACKING: &str = "FROM cells AS of WHERE of.campaign = cells.campaign
             AND of.number IN (cells.audited_performance, cells.audited_accuracy) AND of.state IN (?2, ?3)";
        self.store.all_or_nothing(|store| {
            let skipped = store.execute(&format!(
                    "UPDATE cells SET state = ?3, revision = (SELECT revision + 1 FROM campaigns WHERE name = ?1),
                         reason = (SELECT 'cell ' || of.number || ' has no good run' {LACKING} ORDER BY of.number LIMIT 1)
                     WHERE campaign = ?1 AND state = ?4 AND audited_performance IS NOT NULL AND EXISTS (SELECT 1 {LACKING})"
                ), params![
                    campaign,
                    CellState::Failed.as_str(),
                    CellState::Skipped.as_str(),
                    CellState::Waiting.as_str(),
                ])?;
            if skipped > 0 {
                store.campaigns().increment_revision(campaign)?;
            }
            Ok(())
        })
    }

    /// Makes failed cells wait again, as if they had had no attempt, and the audits that were skipped because of them. `cause` selects the
    /// failed cells. The campaign continues if it has ended, unless it was aborted. The change is logged. Returns how many wait again.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn retry(&self, campaign: &str, cause: EndCause, by: &str) -> Result<usize> {
        self.store.all_or_nothing(|store| {
            let retried = store.execute(
                "UPDATE cells SET state = ?3, cause = NULL, reason = NULL,
                     revision = (SELECT revision + 1 FROM campaigns WHERE name = ?1), counted_from = coalesce(
                     (SELECT max(number) FROM attempts WHERE attempts.campaign = cells.campaign AND attempts.cell = cells.number), 0)
                 WHERE campaign = ?1 AND state = ?4 AND cause = ?2
                     AND (SELECT state FROM campaigns WHERE name = ?1) <> ?5", params![
                    campaign,
                    cause.as_str(),
                    CellState::Waiting.as_str(),
                    CellState::Failed.as_str(),
                    CampaignState::Aborted.as_str(),
                ])?;
            if retried == 0 {
                return Ok(0);
            }
            store.campaigns().reopen(campaign)?;
            store.campaign_log().add(campaign, CampaignChange::Retried(cause), by)?;
            let audits = store.execute(
                "UPDATE cells SET state = ?2, reason = NULL, revision = (SELECT revision FROM campaigns WHERE name = ?1)
                 WHERE campaign = ?1 AND state = ?3 AND audited_performance IS NOT NULL AND NOT EXISTS (
                     SELECT 1 FROM cells AS of WHERE of.campaign = cells.campaign
                         AND of.number IN (cells.audited_performance, cells.audited_accuracy) AND of.state IN (?3, ?4))", params![
                    campaign,
                    CellState::Waiting.as_str(),
                    CellState::Skipped.as_str(),
                    CellState::Failed.as_str(),
                ])?;
            Ok(retried + audits)
        })
    }

    /// Makes skipped cells wait again, except those whose audited cell failed. The campaign continues if it has ended, unless it was aborted.
    /// The change is logged. Returns how many wait again.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn retry_skipped(&self, campaign: &str, by: &str) -> Result<usize> {
        self.store.all_or_nothing(|store| {
            let retried = store.execute(
                "UPDATE cells SET state = ?2, reason = NULL, revision = (SELECT revision + 1 FROM campaigns WHERE name = ?1)
                 WHERE campaign = ?1 AND state = ?3 AND (SELECT state FROM campaigns WHERE name = ?1) <> ?5
                     AND NOT EXISTS (SELECT 1 FROM cells AS of WHERE of.campaign = cells.campaign
                         AND of.number IN (cells.audited_performance, cells.audited_accuracy) AND of.state = ?4)", params![
                    campaign,
                    CellState::Waiting.as_str(),
                    CellState::Skipped.as_str(),
                    CellState::Failed.as_str(),
                    CampaignState::Aborted.as_str(),
                ])?;
            if retried > 0 {
                store.campaigns().reopen(campaign)?;
                store.campaign_log().add(campaign, CampaignChange::RetriedSkipped, by)?;
            }
            Ok(retried)
        })
    }

    /// Sets the state of a cell.
    pub(super) fn set_state(
        &self,
        campaign: &str,
        number: u64,
        state: CellState,
        cause: Option<EndCause>,
        reason: Option<&str>,
    ) -> Result<()> {
        self.store.execute(
            "UPDATE cells SET state = ?3, cause = ?4, reason = ?5 WHERE campaign = ?1 AND number = ?2",
            params![
                campaign,
                values::signed(number),
                state.as_str(),
                cause.map(EndCause::as_str),
                reason
            ],
        )?;
        Ok(())
    }
}
