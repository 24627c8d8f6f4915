//! A lab under the steps of its plan: it always has work, and each fault is injected and undone at its time.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use regatta_tests::{
    Broker,
    faults::{FaultLab, LAB_ROOT, Report},
};

use crate::{
    lab::Lab,
    plan::{InjectedFault, Kind, Step, Victim},
    {EMBEDDED, MOSQUITTO},
};

/// The number of runs to keep open.
const OPEN_RUNS: usize = 2;
/// The maximum number of faults that find no target. Up to this, each is tried again at the end.
const TRIES: u32 = 12;

impl FaultLab for Lab {
    type Case = Step;

    fn run_case(&mut self, step: Step, report: &mut Report) -> anyhow::Result<Vec<Step>> {
        self.keep_busy()?;
        let missed = self.do_step(&step, report)?;
        let again = missed.into_iter().map(|fault| {
            self.missed += 1;
            // No run process has started for long, because an earlier delivery waits. Another fault replaces this one.
            let kind = match self.missed < TRIES {
                true => fault.kind,
                false => Kind::Kill(Victim::Agent),
            };
            Step {
                faults: vec![InjectedFault { kind, ..fault }],
                pause: step.pause,
            }
        });
        Ok(again.collect())
    }

    fn judge(&mut self, report: &mut Report) -> anyhow::Result<()> {
        self.judge_all(report)
    }

    fn traces(&self) -> Vec<PathBuf> {
        let names = ["journal.txt", "logs", "device", "coordinator"];
        names.map(|name| Path::new(LAB_ROOT).join(name)).into()
    }
}

impl Lab {
    pub(crate) fn count(&self, kind: Kind, report: &mut Report) {
        let column = match self.broker {
            Broker::Embedded => EMBEDDED,
            Broker::Mosquitto => MOSQUITTO,
        };
        report.count_injected();
        report.count_fault(&kind.to_string(), kind.means(), column);
    }

    /// Injects a step's faults together and undoes each at its time. Returns the faults that found no target.
    fn do_step(&mut self, step: &Step, report: &mut Report) -> anyhow::Result<Vec<InjectedFault>> {
        let (mut injected, mut missed) = (Vec::new(), Vec::new());
        for fault in &step.faults {
            if self.inject(fault)? {
                self.count(fault.kind, report);
                injected.push(*fault);
            } else {
                missed.push(*fault);
            }
        }
        injected.sort_by_key(|fault| fault.hold);
        let mut passed = Duration::ZERO;
        for fault in injected {
            self.pass(fault.hold.saturating_sub(passed))?;
            passed = fault.hold;
            self.heal(&fault)?;
        }
        self.pass(step.pause)?;
        Ok(missed)
    }

    /// Requests runs until enough are open.
    fn keep_busy(&mut self) -> anyhow::Result<()> {
        let open = self.runs()?.iter().filter(|run| run.recorded.is_none()).count();
        for _ in open..OPEN_RUNS {
            self.request_run()?;
        }
        Ok(())
    }
}
