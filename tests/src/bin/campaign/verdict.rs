//! Checks a lab after a campaign: every run by `checker`, the list of runs, the remains on the disks, memory and processes. Last come damages
//! to one good run, which the checker must see.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use regatta_tests::faults::{
    LAB_ROOT, Report,
    processes::lab_processes,
    run_checker::{self, ListedRun},
    run_mutation,
};
use ring::signature::KeyPair as _;

use crate::lab::Lab;

/// The longest wait after the last fault, for keep-alives to notice half-open connections and for pauses to end.
const DRAIN_PATIENCE: Duration = Duration::from_secs(240);
const STOP_PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(500);
/// The limit of the agent's peak resident memory in KiB. The delivery bench limits a board's build to 24 MiB. The unoptimised build here
/// has a 60 MB binary, and its executed pages count too.
const AGENT_KIB: u64 = if cfg!(debug_assertions) { 32 } else { 24 } * 1024;
/// The limit of the coordinator's peak resident memory in KiB. The embedded broker may queue 16 MiB for one subscriber, and 16 MiB of
/// logs may wait for the end of their batch. The rest is for the unoptimised build.
const COORDINATOR_KIB: u64 = 160 * 1024;
/// Of so many faults at least one run is done. Otherwise the campaign shows little.
const FAULTS_PER_DONE_RUN: u64 = 6;

impl Lab {
    /// Waits for every run to end, stops the daemons, and reports all violations.
    pub(crate) fn judge_all(&mut self, report: &mut Report) -> anyhow::Result<()> {
        let begin = Instant::now();
        let runs = loop {
            self.pass(LOOK)?;
            let runs = self.runs()?;
            if runs.iter().all(|run| run.recorded.is_some()) || begin.elapsed() > DRAIN_PATIENCE {
                break runs;
            }
        };
        report.max(
            "longest wait for the last run after the last fault, s",
            begin.elapsed().as_secs_f64(),
        );
        self.write_log.catch_up()?;
        judge_runs(self, &runs, report)?;
        report.wrong.append(&mut self.write_log.violations());
        judge_ids(self, &runs, &mut report.wrong)?;
        judge_memory(self, report);
        for daemon in self.daemons() {
            report.wrong.append(&mut daemon.crashes);
            report.sum(
                "daemons restarted after a full disk or without a broker",
                daemon.gave_up.into(),
            );
            if let Err(error) = daemon.stop(STOP_PATIENCE) {
                report.wrong.push(format!("{error:#}"));
            }
            if daemon.log().contains("panicked at") {
                report.wrong.push("a daemon panicked: see its log".to_owned());
            }
        }
        judge_processes(&mut report.wrong);
        Ok(())
    }
}

/// Checks every run against the account of writes.
fn judge_runs(lab: &Lab, runs: &[ListedRun], report: &mut Report) -> anyhow::Result<()> {
    let key = lab.device_key()?;
    let (mut example, mut done) = (None, 0);
    for run in runs {
        report.sum(&format!("runs {}", run.phase), 1);
        done += u64::from(run.phase == "done");
        let writes = lab.write_log.of(&run.run);
        let checked = lab.as_checked(run, &writes, key.public_key().as_ref());
        report.sum(
            "released runs that the device removed, disk full",
            u64::from(!checked.device.exists()),
        );
        if run_checker::check_and_report(&checked, report)?
            && run.phase == "done"
            && checked.answers.is_some()
        {
            example = Some(run);
        }
    }
    report.require_done("runs", done, FAULTS_PER_DONE_RUN);
    let Some(run) = example else {
        report.wrong.push("no good run to try the checker on".to_owned());
        return Ok(());
    };
    let writes = lab.write_log.of(&run.run);
    let checked = lab.as_checked(run, &writes, key.public_key().as_ref());
    let scratch = Path::new(LAB_ROOT).join("damages");
    fs::create_dir_all(&scratch)?;
    for damage in run_mutation::undetected(&checked, &key, &scratch)? {
        report
            .wrong
            .push(format!("the checker does not see {damage} in run {}", run.run));
    }
    Ok(())
}

/// Checks that the runs are the requested ones, each once, and that the runs' directories have nothing else.
fn judge_ids(lab: &Lab, runs: &[ListedRun], wrong: &mut Vec<String>) -> anyhow::Result<()> {
    let requested: BTreeSet<&str> = lab.requested.iter().map(|run| run.id.as_str()).collect();
    let listed: BTreeSet<&str> = runs.iter().map(|run| run.run.as_str()).collect();
    if requested != listed || runs.len() != listed.len() || lab.requested.len() != requested.len() {
        wrong.push(format!(
            "{} runs were requested and {} are listed: {:?}",
            lab.requested.len(),
            runs.len(),
            requested.symmetric_difference(&listed).collect::<Vec<_>>()
        ));
    }
    for run in lab.write_log.owners() {
        if !requested.contains(run.as_str()) {
            wrong.push(format!("the device wrote run {run}, which nobody requested"));
        }
    }
    for directory in lab.runs_dirs() {
        for entry in fs::read_dir(&directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !requested.contains(name.as_str()) {
                wrong.push(format!(
                    "{} holds {name}, which nobody asked for",
                    directory.display()
                ));
            }
        }
    }
    for run in runs {
        for directory in lab.run_dirs(&run.run) {
            orphans_below(&directory, run, wrong);
        }
    }
    Ok(())
}

/// Finds half-written files, and partial streams of a complete run.
fn orphans_below(directory: &Path, run: &ListedRun, wrong: &mut Vec<String>) {
    let names = |directory: &Path| -> Vec<String> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    };
    for place in [directory.to_owned(), directory.join("files")] {
        for name in names(&place) {
            let half_written = name.starts_with('.') || name.ends_with(".part") || name.ends_with(".new");
            if half_written {
                wrong.push(format!("{} is an orphan", place.join(name).display()));
            }
        }
    }
    let partial = directory.join("partial");
    if run.complete == Some(true) && partial.exists() {
        wrong.push(format!(
            "{} is an orphan: {:?}",
            partial.display(),
            names(&partial)
        ));
    }
}

fn judge_memory(lab: &Lab, report: &mut Report) {
    for (who, peak, limit) in [
        ("agent", lab.agent.peak_kib, AGENT_KIB),
        ("coordinator", lab.coordinator.peak_kib, COORDINATOR_KIB),
    ] {
        report.max(&format!("peak KiB of the {who}, limit {limit}"), peak as f64);
        if peak > limit {
            report.wrong.push(format!(
                "the {who} used {peak} KiB of memory, its limit is {limit}"
            ));
        }
    }
}

/// Checks that the campaign is the only process left in its namespace.
fn judge_processes(wrong: &mut Vec<String>) {
    let begin = Instant::now();
    while lab_processes().next().is_some() && begin.elapsed() < STOP_PATIENCE {
        std::thread::sleep(LOOK);
    }
    wrong.extend(
        lab_processes()
            .map(|(process, line)| format!("process {} is an orphan: {}", process.as_raw_nonzero(), line)),
    );
}
