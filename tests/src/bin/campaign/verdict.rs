//! Checks a lab after a campaign. Every file must be equal on both sides and every run must have ended once. Nothing may be left over,
//! and memory must be within bounds. The checks only read disks and processes.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use serde::Deserialize;

use crate::{
    inject::processes,
    lab::{Lab, ListedRun},
    originals::{self, Originals},
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
/// The device's message for a run whose files it could not hash and sign, and which is therefore incomplete.
const UNSEALED: &str = "could not be sealed";

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
    for run in &runs {
        judge_run(lab, run, totals, &mut wrong)?;
    }
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

fn judge_run(
    lab: &mut Lab,
    run: &ListedRun,
    totals: &mut Totals,
    wrong: &mut Vec<String>,
) -> anyhow::Result<()> {
    let id = &run.run;
    let reason = run.reason.as_deref().unwrap_or_default();
    *totals.phases.entry(run.phase.clone()).or_default() += 1;
    if !["done", "failed", "aborted"].contains(&run.phase.as_str()) || run.recorded.is_none() {
        wrong.push(format!("run {id} has not ended: it is {} ({reason})", run.phase));
    }
    if run.phase == "failed" && reason.is_empty() {
        wrong.push(format!("run {id} failed without a reason"));
    }
    let originals = match originals::of_run(lab, run) {
        Ok(originals) => originals,
        Err(error) => {
            wrong.push(format!("{error:#}"));
            return Ok(());
        }
    };
    totals.freed_space += u64::from(originals.freed_space);
    let device = &originals.files;
    let [_, coordinator] = lab.run_dirs(id);
    let coordinator = originals::hashes(&coordinator.join("files"))?;
    for (name, (hash, bytes)) in device {
        totals.files += 1;
        totals.bytes += bytes;
        match coordinator.get(name) {
            Some((same, _)) if same == hash => {}
            Some((_, have)) => wrong.push(format!(
                "run {id}: {name} differs: {bytes} bytes on the device, {have} here"
            )),
            None if reason.contains(UNSEALED) => totals.reported_incomplete += 1,
            None => wrong.push(format!(
                "run {id} ({}: {reason}): {name} was lost, {bytes} bytes",
                run.phase
            )),
        }
    }
    for name in coordinator.keys().filter(|name| !device.contains_key(*name)) {
        wrong.push(format!("run {id}: {name} is not the device's"));
    }
    let is_sealed = device.contains_key("evidence.sig");
    if run.complete != Some(true) && is_sealed && run.recorded.is_some() {
        wrong.push(format!(
            "run {id}: everything is there and it is called incomplete"
        ));
    }
    if run.complete == Some(true) && !is_sealed {
        wrong.push(format!("run {id} is called complete and has no signed evidence"));
    }
    judge_once(&originals, id, wrong);
    Ok(())
}

#[derive(Deserialize)]
struct Evidence {
    attempts: Vec<serde_json::Value>,
}

/// Checks that a run ran once: one attempt in its evidence, and one start in its detail log.
fn judge_once(originals: &Originals, id: &str, wrong: &mut Vec<String>) {
    let read = |name: &str| fs::read(originals.directory.join(name)).unwrap_or_default();
    let detail = String::from_utf8_lossy(&read("mlperf_log_detail.txt")).into_owned();
    if detail.matches("\"loadgen_version\"").count() > 1 {
        wrong.push(format!("run {id} was run twice: its detail log begins twice"));
    }
    let attempts = serde_json::from_slice(&read("evidence.json"))
        .map_or(0, |evidence: Evidence| evidence.attempts.len());
    if attempts > 1 {
        wrong.push(format!("run {id} has {attempts} attempts"));
    }
}

/// Checks that the runs are the requested ones, each once, and that the runs' directories have nothing else.
fn judge_ids(lab: &Lab, runs: &[ListedRun], wrong: &mut Vec<String>) -> anyhow::Result<()> {
    let requested: BTreeSet<&str> = lab.requested.iter().map(String::as_str).collect();
    let listed: BTreeSet<&str> = runs.iter().map(|run| run.run.as_str()).collect();
    if requested != listed || runs.len() != listed.len() || lab.requested.len() != requested.len() {
        wrong.push(format!(
            "{} runs were requested and {} are listed: {:?}",
            lab.requested.len(),
            runs.len(),
            requested.symmetric_difference(&listed).collect::<Vec<_>>()
        ));
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
