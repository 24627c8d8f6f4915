//! `regatta runs remove` and `runs prune`: removes runs from this workspace and from their devices. A run that an audit or a submission
//! tree needs, or that is not delivered completely, is only removed by force.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use jiff::{SignedDuration, Timestamp};
use regatta_text::{HumanDuration, escape};
use regatta_types::{DeviceId, ExitCode, RunId, documents::RunPhase};
use serde_json::json;

use super::{
    super::{Context, confirm::confirm},
    ending::may_execute,
};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_runs as runs;
use regatta_lab_store::{RunRemoval, RunRow, Store, workspace::Workspace};
use regatta_lab_views::{
    lookup::{self, RunDevices},
    wording,
};

/// Flags of `runs remove`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RemoveArgs {
    /// Run ids, their beginnings or ends, or `last`
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// Include runs that a submission tree or an audit needs, or that are not completely delivered
    #[arg(long)]
    force: bool,
    /// Do not prompt
    #[arg(long)]
    yes: bool,
    /// Show what would be removed
    #[arg(long)]
    dry_run: bool,
}

/// Flags of `runs prune`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").args(["older_than", "failed"]).required(true).multiple(true))]
pub(in crate::cli) struct PruneArgs {
    /// Remove runs that were requested longer ago than this, such as 12h or 30d
    #[arg(long, value_name = "DURATION")]
    older_than: Option<HumanDuration>,
    /// Remove failed and aborted runs only
    #[arg(long)]
    failed: bool,
    #[command(flatten)]
    devices: RunDevices,
    /// Do not prompt
    #[arg(long)]
    yes: bool,
    /// Show what would be removed
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy)]
struct RemovalOptions {
    /// Whether the user has confirmed the removal with a flag.
    is_confirmed: bool,
    dry_run: bool,
}

/// The runs that a command selects for removal.
struct Selection {
    runs: Vec<RunRow>,
    /// The runs that are kept, each with the reason.
    kept: BTreeMap<RunId, String>,
}

/// Removes the named runs.
pub(super) fn remove(
    args: &RemoveArgs,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> CommandResult {
    let rows = lookup::runs(store, &args.runs)?;
    if let Some(open) = rows.iter().find(|row| !row.is_over()) {
        return Err(not_recorded(open, context));
    }
    if let Some(row) = rows.iter().find(|row| !row.is_removable()) {
        return Err(Failure::misuse(format!(
            "run {} may still execute on {}, which aborts it when it reconnects",
            row.id,
            wording::run_text::device(row)
        ))
        .hint(format!(
            "remove it then; `device remove` ends all that the device does here: {}",
            context.command(&format!("device remove {}", row.device))
        )));
    }
    let removal = Selection::plan(rows, store)?;
    if !removal.kept.is_empty() && !args.force {
        return Err(
            Failure::misuse(format!("nothing was removed: {}", removal.reasons()))
                .hint("--force removes them all the same"),
        );
    }
    let forced = if removal.kept.is_empty() {
        String::new()
    } else {
        format!(" although {}", removal.reasons())
    };
    let all = Selection {
        kept: BTreeMap::new(),
        ..removal
    };
    let options = RemovalOptions {
        is_confirmed: args.yes,
        dry_run: args.dry_run,
    };
    all.execute(&forced, options, context, workspace, store)
}

/// Removes the runs that the flags select, except those that something needs.
pub(super) fn prune(
    args: &PruneArgs,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> CommandResult {
    let before = args
        .older_than
        .map(|age| {
            let age = SignedDuration::from_millis(i64::try_from(age.millis()).unwrap_or(i64::MAX));
            Timestamp::now().saturating_sub(age)
        })
        .transpose()?;
    let devices: BTreeSet<DeviceId> = args.devices.find(store)?;
    let mut rows = store.runs().all()?;
    rows.reverse();
    rows.retain(|row| {
        let created = || row.draft.spec.created.parse::<Timestamp>();
        row.is_removable()
            && (devices.is_empty() || devices.contains(&row.device))
            && before.is_none_or(|before| created().is_ok_and(|created| created < before))
            && (!args.failed || matches!(row.state.phase, RunPhase::Failed | RunPhase::Aborted))
    });
    let options = RemovalOptions {
        is_confirmed: args.yes,
        dry_run: args.dry_run,
    };
    Selection::plan(rows, store)?.execute("", options, context, workspace, store)
}

impl Selection {
    fn plan(runs: Vec<RunRow>, store: &Store) -> Result<Self, Failure> {
        let named: BTreeSet<RunId> = runs.iter().map(|row| row.id).collect();
        let mut kept = BTreeMap::new();
        for row in &runs {
            let trees = store.staged_runs().trees_with(row.id)?;
            let staged = trees.iter().find(|tree| tree.exists());
            let reason = staged.map(|tree| format!("it is staged in {}", tree.display()));
            if let Some(reason) = reason.or_else(|| kept_by_device(row)) {
                kept.insert(row.id, reason);
            }
        }
        // A run is needed by audits that are not removed, including those just kept, and by complete power sessions.
        let mut needed = BTreeMap::new();
        let stays = |row: &&RunRow| !named.contains(&row.id) || kept.contains_key(&row.id);
        for row in store.runs().all()?.iter().filter(stays) {
            if let Some(of) = &row.draft.spec.audit {
                for run in std::iter::once(of.performance).chain(of.accuracy) {
                    needed.insert(run, format!("audit {} ({}) refers to it", of.test, row.id));
                }
            }
        }
        let sessions = store.power_sessions().all()?.into_iter();
        for session in sessions.filter(|session| session.verdict.is_some()) {
            for run in session.ranging.into_iter().chain(session.testing) {
                needed.insert(run, format!("power session {} refers to it", session.id));
            }
        }
        for row in &runs {
            if let Some(reason) = needed.remove(&row.id) {
                kept.entry(row.id).or_insert(reason);
            }
        }
        Ok(Self { runs, kept })
    }

    fn reasons(&self) -> String {
        let reasons: Vec<String> = self
            .kept
            .iter()
            .map(|(run, reason)| format!("run {run}: {}", escape(reason)))
            .collect();
        reasons.join("; ")
    }

    /// Removes the runs that are not kept, after a confirmation.
    fn execute(
        &self,
        forced: &str,
        options: RemovalOptions,
        context: &Context,
        workspace: &Workspace,
        store: &Store,
    ) -> CommandResult {
        let removed: Vec<&RunRow> = self
            .runs
            .iter()
            .filter(|row| !self.kept.contains_key(&row.id))
            .collect();
        let bytes = removed
            .iter()
            .filter_map(|row| row.outcome.as_ref())
            .map(|outcome| outcome.bytes)
            .sum();
        let what = format!("{} ({})", count(removed.len()), wording::bytes(bytes));
        let staying = removed.iter().filter(|row| row.stays_on_device());
        let mut left: Vec<RunId> = staying.map(|row| row.id).collect();
        let places = places(left.len(), removed.len());
        let dry_run = options.dry_run;
        if !dry_run && !removed.is_empty() {
            confirm(&format!("Remove {what} {places}{forced}?"), options.is_confirmed)?;
            left.clear();
            let removal = runs::Removal::begin(workspace, store)?;
            for row in &removed {
                match removal.remove(row.id)? {
                    RunRemoval::Everywhere => {}
                    RunRemoval::HereOnly => left.push(row.id),
                    RunRemoval::Refused => return Err(reopened(row, context)),
                }
            }
            removal.sweep()?;
        }
        let kept: Vec<_> = self
            .kept
            .iter()
            .map(|(run, reason)| json!({ "run": run, "reason": reason }))
            .collect();
        let ids: Vec<RunId> = removed.iter().map(|row| row.id).collect();
        let document = json!({
            "dry_run": dry_run, "removed": ids, "left_on_devices": left, "bytes": bytes, "kept": kept,
        });
        context.print(&document, || {
            let mut text = match (dry_run, removed.is_empty()) {
                (_, true) => "no run is removed".to_owned(),
                (true, _) => format!(
                    "{}\nwould remove {what} {places}",
                    tables::runs(&self.rows_of(&ids))
                ),
                (false, _) => format!("removed {what}"),
            };
            if !dry_run && left.len() < ids.len() {
                text.push_str("; devices remove their copies when they are online and idle");
            }
            if !dry_run && !left.is_empty() {
                // Writing to a `String` cannot fail.
                let _ = write!(text, "; devices keep their copies of {}", count(left.len()));
            }
            for (run, reason) in &self.kept {
                // Writing to a `String` cannot fail.
                let _ = write!(text, "\nkept {run}: {}", escape(reason));
            }
            text
        })?;
        Ok(ExitCode::Success)
    }

    fn rows_of(&self, ids: &[RunId]) -> Vec<RunRow> {
        self.runs
            .iter()
            .filter(|row| ids.contains(&row.id))
            .cloned()
            .collect()
    }
}

/// Describes why a run's device does not forget it.
fn kept_by_device(row: &RunRow) -> Option<String> {
    let reason = if row.has_undelivered_files() {
        "not all of its files arrived, and its device may still have them"
    } else {
        "its evidence has no valid signature, so its device keeps the copy"
    };
    row.stays_on_device().then(|| reason.to_owned())
}

/// Returns the failure of a run that is not recorded yet. One that its device has ended cannot be aborted any more.
fn not_recorded(row: &RunRow, context: &Context) -> Failure {
    if may_execute(row) {
        let abort = context.command(&format!("runs abort {}", row.id));
        return Failure::misuse(format!("run {} is {}", row.id, row.shown_phase()))
            .hint(format!("end it first: {abort}"));
    }
    let give_up = context.command(&format!("runs give-up {}", row.id));
    Failure::misuse(format!("run {} has ended, but is not recorded yet", row.id)).hint(format!(
        "the coordinator records it once its files have arrived; this records it without them: {give_up}"
    ))
}

/// Says where runs are removed, if the devices keep `left` of them.
fn places(left: usize, runs: usize) -> String {
    match left {
        0 => "here and on their devices".to_owned(),
        _ if left == runs => "here, not on their devices".to_owned(),
        _ => format!("here, and all but {left} on their devices"),
    }
}

/// Returns the failure of a run that changed between its selection and its removal.
fn reopened(row: &RunRow, context: &Context) -> Failure {
    Failure::could_not(format!("run {} was reopened in the meantime", row.id)).hint(format!(
        "this shows its state: {}",
        context.command(&format!("runs show {}", row.id))
    ))
}

fn count(runs: usize) -> String {
    match runs {
        1 => "1 run".to_owned(),
        more => format!("{more} runs"),
    }
}
