//! One lab's campaign: runs the plan of its seed step by step on a lab that always has work, then checks the result. It is the first
//! process of its own namespaces, so every process ends with it.

use std::{
    collections::VecDeque,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use regatta_tests::{Broker, fault_labs};

use crate::{
    keys::KILLED_DURING_ENROLLMENT,
    lab::{Lab, Programs},
    plan::{self, InjectedFault, Kind, Moment, Step, Victim},
    report::{LabReport, Totals},
    rng::Rng,
    shell, verdict,
};

/// The number of runs to keep open.
const OPEN_RUNS: usize = 2;
/// The maximum number of faults that find no target. Up to this, each is tried again at the end.
const TRIES: u32 = 12;

/// Runs a lab with `faults` faults from `seed` and prints its report as JSON. Copies the files of a failed lab to `keep`, and with
/// `keep_good` those of any lab.
///
/// # Errors
/// Returns an error when the lab cannot be created or operated.
pub(crate) fn run(
    broker: Broker,
    programs: Programs,
    seed: u64,
    faults: usize,
    keep: &Path,
    keep_good: bool,
) -> anyhow::Result<()> {
    fault_labs::end_with_the_parent();
    own_file_systems()?;
    let begin = Instant::now();
    let mut totals = Totals::default();
    let mut rng = Rng::new(seed);
    let mut lab = Lab::set_up(broker, programs, &mut rng)?;
    for side in KILLED_DURING_ENROLLMENT {
        totals.count(Kind::KillAt(Moment::Enrolling(side)), 1);
    }
    let faults = faults.saturating_sub(KILLED_DURING_ENROLLMENT.len());
    let outcome = work_through(&mut lab, &mut rng, faults, &mut totals);
    let wrong = match outcome {
        Ok(wrong) => wrong,
        Err(error) => vec![format!("the campaign could not go on: {error:#}")],
    };
    if keep_good || !wrong.is_empty() {
        leave_traces(&lab, &wrong, keep)?;
    }
    totals.seconds = begin.elapsed().as_secs_f64();
    println!("{}", serde_json::to_string(&LabReport { totals, wrong })?);
    Ok(())
}

fn work_through(
    lab: &mut Lab,
    rng: &mut Rng,
    faults: usize,
    totals: &mut Totals,
) -> anyhow::Result<Vec<String>> {
    let mut steps: VecDeque<Step> = plan::plan(faults, broker_is_external(lab), rng).into();
    // Work has its own generator, so that the plan depends on the seed alone.
    let mut dice = Rng::new(rng.bits());
    let mut missed = 0;
    while let Some(step) = steps.pop_front() {
        keep_busy(lab, &mut dice)?;
        for fault in do_step(lab, &step, totals)? {
            missed += 1;
            // No run process has started for long, because an earlier delivery waits. Another fault replaces this one.
            let kind = if missed < TRIES {
                fault.kind
            } else {
                Kind::Kill(Victim::Agent)
            };
            let (faults, pause) = (vec![InjectedFault { kind, ..fault }], step.pause);
            steps.push_back(Step { faults, pause });
        }
    }
    verdict::judge(lab, totals)
}

fn broker_is_external(lab: &Lab) -> bool {
    lab.broker == Broker::Mosquitto
}

/// Injects a step's faults together and undoes each at its time. Returns the faults that found no target.
fn do_step(lab: &mut Lab, step: &Step, totals: &mut Totals) -> anyhow::Result<Vec<InjectedFault>> {
    let (mut injected, mut missed) = (Vec::new(), Vec::new());
    for fault in &step.faults {
        if lab.inject(fault)? {
            totals.count(fault.kind, 1);
            injected.push(*fault);
        } else {
            missed.push(*fault);
        }
    }
    injected.sort_by_key(|fault| fault.hold);
    let mut passed = Duration::ZERO;
    for fault in injected {
        lab.pass(fault.hold.saturating_sub(passed))?;
        passed = fault.hold;
        lab.heal(&fault)?;
    }
    lab.pass(step.pause)?;
    Ok(missed)
}

/// Requests runs until enough are open.
fn keep_busy(lab: &mut Lab, dice: &mut Rng) -> anyhow::Result<()> {
    let open = lab.runs()?.iter().filter(|run| run.recorded.is_none()).count();
    for _ in open..OPEN_RUNS {
        lab.request_run(dice)?;
    }
    Ok(())
}

/// Mounts file systems that only this process and its children see.
fn own_file_systems() -> anyhow::Result<()> {
    shell::run("mount -t tmpfs none /run")?;
    shell::run("mount -t tmpfs none /dev/shm")?;
    fs::create_dir_all("/run/netns").context("/run/netns")
}

/// Copies the files of a failed campaign for inspection.
fn leave_traces(lab: &Lab, wrong: &[String], keep: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(keep)?;
    fs::write(keep.join("wrong.txt"), wrong.join("\n") + "\n")?;
    fs::write(keep.join("journal.txt"), lab.journal.join("\n") + "\n")?;
    for place in ["/run/lab/logs", "/run/lab/device", "/run/lab/coordinator"] {
        shell::succeed(shell::command("cp")?.arg("-a").arg(place).arg(keep))?;
    }
    Ok(())
}
