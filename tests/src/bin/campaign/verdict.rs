//! Checks a lab after a campaign: every run by `checker`, the list of runs, the remains on the disks, memory and processes. Last come damages
//! to one good run, which the checker must see.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use ring::signature::KeyPair as _;

use crate::{
    checker,
    inject::processes,
    lab::{Lab, ListedRun},
    mutation,
    report::Totals,
};

/// The longest wait after the last fault, for keep-alives to notice half-open connections and for pauses to end.
const DRAIN_PATIENCE: Duration = Duration::from_secs(240);
const STOP_PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(500);
/// The limit of the agent's peak resident memory in KiB. The delivery bench limits a board's build to 24 MiB. The unoptimised build here
/// has a 60 MB binary, and its executed pages count too.
pub(crate) const AGENT_KIB: u64 = if cfg!(debug_assertions) { 32 } else { 24 } * 1024;
/// The limit of the coordinator's peak resident memory in KiB. The embedded broker may queue 16 MiB for one subscriber, and 16 MiB of
/// logs may wait for the end of their batch. The rest is for the unoptimised build.
pub(crate) const COORDINATOR_KIB: u64 = 160 * 1024;
/// Of so many faults at least one run is done. Otherwise the campaign shows little.
const FAULTS_PER_DONE_RUN: u64 = 6;

/// Waits for every run to end, stops the daemons, and returns all violations.
///
/// # Errors
/// Returns an error when the lab itself fails.
pub(crate) fn judge(lab: &mut Lab, totals: &mut Totals) -> anyhow::Result<Vec<String>> {
    let begin = Instant::now();
    let runs = loop {
        lab.pass(LOOK)?;
        let runs = lab.runs()?;
        if runs.iter().all(|run| run.recorded.is_some()) || begin.elapsed() > DRAIN_PATIENCE {
            break runs;
        }
    };
    totals.drain_s = begin.elapsed().as_secs_f64();
    let mut wrong = Vec::new();
    lab.write_log.catch_up()?;
    judge_runs(lab, &runs, totals, &mut wrong)?;
    wrong.append(&mut lab.write_log.violations());
    judge_ids(lab, &runs, &mut wrong)?;
    judge_memory(lab, totals, &mut wrong);
    for daemon in lab.daemons() {
        wrong.append(&mut daemon.crashes);
        totals.restarts += u64::from(daemon.gave_up);
        if let Err(error) = daemon.stop(STOP_PATIENCE) {
            wrong.push(format!("{error:#}"));
        }
        if daemon.log().contains("panicked at") {
            wrong.push("a daemon panicked: see its log".to_owned());
        }
    }
    judge_processes(&mut wrong);
    Ok(wrong)
}

/// Checks every run against the account of writes.
fn judge_runs(
    lab: &mut Lab,
    runs: &[ListedRun],
    totals: &mut Totals,
    wrong: &mut Vec<String>,
) -> anyhow::Result<()> {
    let key = lab.device_key()?;
    let mut example = None;
    for run in runs {
        *totals.phases.entry(run.phase.clone()).or_default() += 1;
        let writes = lab.write_log.of_run(&run.run);
        let checked = lab.as_checked(run, &writes, key.public_key().as_ref());
        totals.freed_space += u64::from(!checked.device.exists());
        let (compared, found) = checker::check(&checked)?;
        totals.add_compared(&compared);
        wrong.extend(
            found
                .iter()
                .map(|violation| format!("run {} ({}: {}): {violation}", run.run, run.phase, checked.reason)),
        );
        if found.is_empty() && run.phase == "done" && checked.answers.is_some() {
            example = Some(run);
        }
    }
    let done = totals.phases.get("done").copied().unwrap_or(0);
    let required = totals.faults() / FAULTS_PER_DONE_RUN;
    if done < required.max(1) {
        wrong.push(format!("only {done} runs are done, of at least {required}"));
    }
    let Some(run) = example else {
        wrong.push("no good run to try the checker on".to_owned());
        return Ok(());
    };
    let writes = lab.write_log.of_run(&run.run);
    let checked = lab.as_checked(run, &writes, key.public_key().as_ref());
    let scratch = Path::new("/run/lab/damages");
    fs::create_dir_all(scratch)?;
    for damage in mutation::undetected(&checked, &key, scratch)? {
        wrong.push(format!("the checker does not see {damage:?} in run {}", run.run));
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
    for run in lab.write_log.runs() {
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

fn judge_memory(lab: &mut Lab, totals: &mut Totals, wrong: &mut Vec<String>) {
    totals.agent_peak_kib = lab.agent.peak_kib;
    totals.coordinator_peak_kib = lab.coordinator.peak_kib;
    for (who, peak, bound) in [
        ("agent", totals.agent_peak_kib, AGENT_KIB),
        ("coordinator", totals.coordinator_peak_kib, COORDINATOR_KIB),
    ] {
        if peak > bound {
            wrong.push(format!(
                "the {who} took {peak} KiB of memory, its bound is {bound}"
            ));
        }
    }
}

/// Checks that the campaign is the only process left in its namespace.
fn judge_processes(wrong: &mut Vec<String>) {
    let begin = Instant::now();
    while processes().next().is_some() && begin.elapsed() < STOP_PATIENCE {
        std::thread::sleep(LOOK);
    }
    wrong.extend(processes().map(|(process, line)| {
        format!(
            "process {} is an orphan: {}",
            process.as_raw_nonzero(),
            line.replace('\0', " ")
        )
    }));
}
