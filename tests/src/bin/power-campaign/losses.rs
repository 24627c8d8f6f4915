//! Whether a session or a lab has lost something, by the account of what was written on its disks.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use regatta_tests::faults::{
    Report,
    run_checker::{self, CheckedRun, ListedRun, parse_runs},
    write_log::Writes,
};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::Value;

use crate::{
    lab::{PowerLab, place},
    plan::Kind,
    session::Outcome,
    session_checker::{self, CheckedSession, PARTS, SessionRun},
    session_mutation,
    session_writes::{Place, session_of},
};

/// The longest wait for the delivery of runs after the last session.
const DELIVERY: Duration = Duration::from_secs(240);
const LOOK: Duration = Duration::from_millis(500);
/// The number of faults for which at least one session must be good, besides the last one of each lab.
const FAULTS_PER_GOOD_SESSION: u64 = 8;

/// What is known about the sessions of a lab, besides their rows.
#[derive(Default)]
pub(crate) struct LabHistory {
    /// The owners in the account of writes before the last session.
    owners: BTreeSet<String>,
    /// Runs that overlap a full disk of the workspace, which is also the agent's.
    full_disk_runs: BTreeSet<String>,
    good_sessions: u64,
    /// The last good session: its row, and whether its device was another machine.
    example: Option<(Value, bool)>,
}

/// The account of a session.
struct SessionAccount {
    server: Writes,
    client: Writes,
    /// The runs of both parts, if they were written in the session.
    runs: BTreeMap<&'static str, (String, Writes)>,
}

impl PowerLab {
    /// Checks a session that has just ended.
    pub(crate) fn check_losses(
        &mut self,
        outcome: &Outcome,
        report: &mut Report,
    ) -> anyhow::Result<Vec<String>> {
        self.write_log.catch_up()?;
        let owners: BTreeSet<String> = self.write_log.owners().into_iter().collect();
        let new: BTreeSet<String> = owners.difference(&self.history.owners).cloned().collect();
        self.history.owners = owners;
        let Some(row) = self.row(outcome)? else {
            let wrote = |owner: &String| format!("it was refused, and files of {owner} were written");
            return Ok(new.iter().map(wrote).collect());
        };
        let kind = outcome.fault.kind;
        if kind == Kind::FullWorkspace && outcome.injected.is_some() {
            self.history.full_disk_runs.extend(new.iter().cloned());
        }
        let account = self.account(&row, outcome.fault.remote_device, Some(&new));
        let key = self.device_key()?;
        let checked = self.as_checked(&row, &account, key.public_key().as_ref(), kind);
        let (compared, found) = session_checker::check(&checked)?;
        report.sum("session files compared with what was written", compared);
        if outcome.is_good() {
            self.history.good_sessions += 1;
            self.history.example = Some((row.clone(), outcome.fault.remote_device));
        }
        Ok(found.iter().map(ToString::to_string).collect())
    }

    /// Returns the account of a session. With `new`, its runs must be among these owners.
    fn account(&self, row: &Value, remote_device: bool, new: Option<&BTreeSet<String>>) -> SessionAccount {
        let id = row["session"].as_str().unwrap_or_default();
        let client = if remote_device {
            Place::RemoteClient
        } else {
            Place::Workspace
        };
        let run = |(part, _): (&'static str, &str)| {
            let run = row[part].as_str()?;
            let is_written = new.is_none_or(|new| new.contains(run));
            is_written.then(|| (part, (run.to_owned(), self.write_log.of(run))))
        };
        SessionAccount {
            server: self.write_log.of(&Place::Server.owner(id)),
            client: self.write_log.of(&client.owner(id)),
            runs: PARTS.into_iter().filter_map(run).collect(),
        }
    }

    fn as_checked<'a>(
        &self,
        row: &'a Value,
        account: &'a SessionAccount,
        key: &'a [u8],
        kind: Kind,
    ) -> CheckedSession<'a> {
        let id = row["session"].as_str().unwrap_or_default();
        let run = |(part, _): (&'static str, &str)| {
            let (id, writes) = account.runs.get(part)?;
            Some(SessionRun {
                id,
                coordinator: self.lab.workspace().join("runs").join(id),
                writes,
            })
        };
        CheckedSession {
            id,
            is_good: row["verdict"] == "rehearsal" || row["verdict"] == "pass",
            may_lack_record: matches!(kind, Kind::KillCommand | Kind::FullWorkspace),
            directory: self.directory(id),
            server: &account.server,
            client: &account.client,
            runs: PARTS.map(run),
            key,
        }
    }

    /// Returns the device's key, from its disk.
    fn device_key(&self) -> anyhow::Result<Ed25519KeyPair> {
        let pkcs8 = fs::read(self.lab.state().join("device.key"))?;
        let key = Ed25519KeyPair::from_pkcs8(&pkcs8).ok();
        key.context("the device's key is not an Ed25519 key")
    }

    /// Checks what must be true after the last session: every run and session that was written is listed and arrived, and the checker sees
    /// damages to a good session.
    pub(crate) fn check_lab(&mut self, report: &mut Report) -> anyhow::Result<()> {
        let runs = self.delivered_runs(report)?;
        self.write_log.catch_up()?;
        let key = self.device_key()?;
        for run in &runs {
            report.sum(&format!("runs {}", run.phase), 1);
            let writes = self.write_log.of(&run.run);
            let checked = CheckedRun {
                id: &run.run,
                phase: &run.phase,
                reason: run.reason.as_deref().unwrap_or_default(),
                is_recorded: run.recorded.is_some(),
                is_complete: run.complete == Some(true),
                device: self.lab.state().join("runs").join(&run.run),
                coordinator: self.lab.workspace().join("runs").join(&run.run),
                writes: &writes,
                disk_was_full: self.history.full_disk_runs.contains(&run.run),
                key: key.public_key().as_ref(),
                answers: None,
            };
            run_checker::check_and_report(&checked, report)?;
        }
        self.check_lists(&runs, report)?;
        report.wrong.append(&mut self.write_log.violations());
        report.require_done("sessions", self.history.good_sessions, FAULTS_PER_GOOD_SESSION);
        let Some((row, remote_device)) = self.history.example.clone() else {
            report
                .wrong
                .push("no good session to try the checker on".to_owned());
            return Ok(());
        };
        let account = self.account(&row, remote_device, None);
        let session = self.as_checked(&row, &account, key.public_key().as_ref(), Kind::None);
        let scratch = place("damages");
        fs::create_dir_all(&scratch)?;
        for damage in session_mutation::undetected(&session, &key, &scratch)? {
            let id = session.id;
            report
                .wrong
                .push(format!("the checker does not see {damage} in session {id}"));
        }
        Ok(())
    }

    /// Waits until every run has a record.
    fn delivered_runs(&self, report: &mut Report) -> anyhow::Result<Vec<ListedRun>> {
        let begun = Instant::now();
        loop {
            let output = self
                .command()
                .args(["runs", "list", "--format", "json"])
                .output()?;
            let runs = parse_runs(&output.stdout).context("`runs list` prints JSON")?;
            if runs.iter().all(|run| run.recorded.is_some()) || begun.elapsed() > DELIVERY {
                let seconds = begun.elapsed().as_secs_f64();
                report.max("longest wait for the last run after the last session, s", seconds);
                return Ok(runs);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Checks that every run and session that was written is listed.
    fn check_lists(&self, runs: &[ListedRun], report: &mut Report) -> anyhow::Result<()> {
        let list = self.json(&["power", "list"])?;
        let sessions = list["sessions"].as_array().context("a list")?;
        for owner in self.write_log.owners() {
            let is_listed = match session_of(&owner) {
                Some(id) => sessions.iter().any(|row| row["session"] == id),
                None => runs.iter().any(|run| run.run == owner),
            };
            if !is_listed {
                report
                    .wrong
                    .push(format!("{owner} was written, and it is not listed"));
            }
        }
        Ok(())
    }
}
