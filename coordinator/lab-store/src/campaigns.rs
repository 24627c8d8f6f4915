//! Campaigns: the plan, the state that a user requests, and the end. `cells` and `attempts` have what a campaign consists of.

use super::{CampaignChange, CampaignState, CellState, Combination, Result, Store, cells::NewCell, values};
use crate::database::{Row, params};

/// One campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignRow {
    pub name: String,
    /// SHA-256 of the plan's text.
    pub plan_sha256: String,
    /// The seed of its order.
    pub seed: u64,
    /// The number of further attempts that a cell gets after causes of a device or of the infrastructure.
    pub retries: u64,
    /// The number of further attempts that a cell gets at a measured rate.
    pub rate_retries: u64,
    /// The absence in seconds after which a device counts as lost.
    pub lose_after_s: u64,
    /// The time after which no attempt begins, RFC 3339 UTC.
    pub deadline: Option<String>,
    /// The state that the user requests of it.
    pub state: CampaignState,
    /// The time when it was started.
    pub started: String,
    /// The time when its last cell ended.
    pub ended: Option<String>,
    /// Counts the changes of its cells and attempts.
    pub revision: u64,
}

/// A campaign that starts.
#[derive(Debug)]
pub struct NewCampaign<'a> {
    /// The campaign's row, without its state, end and revision: a new campaign has its own.
    pub row: &'a CampaignRow,
    /// The plan's text.
    pub plan: &'a str,
    pub combinations: &'a [Combination],
    /// Its cells, in their order.
    pub cells: &'a [NewCell],
    /// Whether its devices must keep their software until it ends.
    pub pins_software: bool,
}

fn campaign(row: &Row<'_>) -> Result<CampaignRow> {
    Ok(CampaignRow {
        name: row.get("name")?,
        plan_sha256: row.get("plan_sha256")?,
        seed: values::unsigned(row, "seed")?,
        retries: values::unsigned(row, "retries")?,
        rate_retries: values::unsigned(row, "rate_retries")?,
        lose_after_s: values::unsigned(row, "lose_after_s")?,
        deadline: row.get("deadline")?,
        state: values::parsed(row, "state")?,
        started: row.get("started")?,
        ended: row.get("ended")?,
        revision: values::unsigned(row, "revision")?,
    })
}

/// The campaigns with their plans, states and ends.
#[derive(Debug)]
pub struct Campaigns<'a> {
    pub(super) store: &'a Store,
}

impl Campaigns<'_> {
    /// Stores a campaign with all its cells, or nothing. Returns `false` when there is one with that name.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn add(&self, new: &NewCampaign<'_>) -> Result<bool> {
        let row = new.row;
        self.store.all_or_nothing(|store| {
            let added = store.execute(
                "INSERT INTO campaigns (name, plan, plan_sha256, seed, retries, rate_retries, lose_after_s, deadline, state, started)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (name) DO NOTHING",
                params![
                    row.name,
                    new.plan,
                    row.plan_sha256,
                    values::signed(row.seed),
                    values::signed(row.retries),
                    values::signed(row.rate_retries),
                    values::signed(row.lose_after_s),
                    row.deadline,
                    CampaignState::Running.as_str(),
                    row.started,
                ],
            )?;
            if added == 0 {
                return Ok(false);
            }
            for combination in new.combinations {
                store.cells().add_combination(&row.name, combination)?;
            }
            for (position, cell) in new.cells.iter().enumerate() {
                store.cells().add(&row.name, position, cell)?;
            }
            if new.pins_software {
                store.campaigns().pin_software(&row.name)?;
            }
            Ok(true)
        })
    }

    /// Returns every campaign, oldest first.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn all(&self) -> Result<Vec<CampaignRow>> {
        self.store.rows(
            "SELECT * FROM campaigns ORDER BY started, name",
            params![],
            campaign,
        )
    }

    /// Returns one campaign.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn get(&self, name: &str) -> Result<Option<CampaignRow>> {
        self.store
            .optional("SELECT * FROM campaigns WHERE name = ?1", params![name], campaign)
    }

    /// Changes the requested state of a campaign that has not ended, and logs it. Returns `false` when it has ended, was aborted, or has that
    /// state.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn request_state(&self, name: &str, state: CampaignState, by: &str) -> Result<bool> {
        self.store.all_or_nothing(|store| {
            let changed = store.execute(
                "UPDATE campaigns SET state = ?2, revision = revision + 1
                 WHERE name = ?1 AND ended IS NULL AND state <> ?2 AND state <> 'aborted'",
                params![name, state.as_str()],
            )?;
            if changed > 0 {
                store.campaign_log().add(name, CampaignChange::to(state), by)?;
            }
            Ok(changed > 0)
        })
    }

    /// Changes the deadline of a campaign that was not aborted, and logs it. Returns `false` when it was aborted.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn set_deadline(&self, name: &str, until: Option<&str>, by: &str) -> Result<bool> {
        self.store.all_or_nothing(|store| {
            let changed = store.execute(
                "UPDATE campaigns SET deadline = ?2, revision = revision + 1
                     WHERE name = ?1 AND state <> ?3",
                params![name, until, CampaignState::Aborted.as_str()],
            )?;
            if changed > 0 {
                let change = CampaignChange::Deadline(until.map(str::to_owned));
                store.campaign_log().add(name, change, by)?;
            }
            Ok(changed > 0)
        })
    }

    /// Stores that a campaign has ended, if no cell waits and no attempt is open.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn end(&self, name: &str, now: &str) -> Result<bool> {
        let changed = self.store.execute(
            "UPDATE campaigns SET ended = ?2, revision = revision + 1 WHERE name = ?1 AND ended IS NULL
             AND NOT EXISTS (SELECT 1 FROM cells WHERE campaign = ?1 AND state = ?3)
             AND NOT EXISTS (SELECT 1 FROM attempts WHERE campaign = ?1 AND ended IS NULL)",
            params![name, now, CellState::Waiting.as_str()],
        )?;
        Ok(changed > 0)
    }

    /// Counts a change of a campaign's cells or attempts.
    pub(super) fn increment_revision(&self, name: &str) -> Result<()> {
        self.store.execute(
            "UPDATE campaigns SET revision = revision + 1 WHERE name = ?1",
            params![name],
        )?;
        Ok(())
    }

    /// Counts a change of a cell or of its attempts, so that a reader of changes finds the cell.
    pub(super) fn mark_cell_changed(&self, name: &str, cell: u64) -> Result<()> {
        self.increment_revision(name)?;
        self.store.execute(
            "UPDATE cells SET revision = (SELECT revision FROM campaigns WHERE name = ?1)
             WHERE campaign = ?1 AND number = ?2",
            params![name, values::signed(cell)],
        )?;
        Ok(())
    }

    /// Reopens a campaign whose cells wait again. One that had ended runs, also if it was paused before.
    pub(super) fn reopen(&self, name: &str) -> Result<()> {
        self.store.execute(
            "UPDATE campaigns SET state = CASE WHEN ended IS NULL THEN state ELSE ?2 END, ended = NULL,
             revision = revision + 1 WHERE name = ?1",
            params![name, CampaignState::Running.as_str()],
        )?;
        Ok(())
    }
}
