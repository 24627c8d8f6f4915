//! A lab that makes one session after the other, each under one fault, and judges it.

use std::path::PathBuf;

use regatta_tests::faults::{FaultLab, Report};

use crate::{
    lab::{DEVICE, DIRECTOR, PowerLab, WORKSPACE, place},
    plan::{Kind, SessionFault},
    session::{OUTPUT, Outcome},
};

impl FaultLab for PowerLab {
    type Case = SessionFault;

    fn run_case(&mut self, fault: SessionFault, report: &mut Report) -> anyhow::Result<Vec<SessionFault>> {
        let outcome = self.make(fault)?;
        let mut wrong = self.judge_session(&outcome)?;
        wrong.extend(self.check_losses(&outcome, report)?);
        // Nothing of the sessions before may be lost or changed.
        report.sum("files of earlier sessions compared", self.kept.len() as u64);
        let files = self.session_files()?;
        let changed = self
            .kept
            .iter()
            .find(|(path, content)| files.get(*path) != Some(*content));
        wrong.extend(changed.map(|(path, _)| format!("{path} of an earlier session has changed")));
        self.kept = files;
        count(&outcome, report);
        let about = format!(
            "{} of {} in step {:?}",
            outcome.meter.name, fault.kind, outcome.injected
        );
        eprintln!(
            "{about}: {} after {:.0} s ({:.0} s from the fault)",
            outcome.describe(),
            outcome.whole.as_secs_f64(),
            outcome.until_found.as_secs_f64()
        );
        report
            .wrong
            .extend(wrong.into_iter().map(|what| format!("{about}: {what}")));
        Ok(Vec::new())
    }

    fn judge(&mut self, report: &mut Report) -> anyhow::Result<()> {
        self.check_lab(report)
    }

    fn traces(&self) -> Vec<PathBuf> {
        [WORKSPACE, DIRECTOR, DEVICE, OUTPUT].map(place).into()
    }
}

fn count(outcome: &Outcome, report: &mut Report) {
    let facts = outcome.fault.kind.facts();
    let mut count = |column| report.count_fault(&facts.name, facts.means, column);
    match (&outcome.row, outcome.is_good()) {
        (_, true) => count("good"),
        (None, _) => count("refused"),
        (Some(_), _) => {
            count("failed");
            let seconds = outcome.until_found.as_secs_f64();
            report.time_fault(&facts.name, facts.means, "longest s", seconds);
        }
    }
    if outcome.injected.is_some() && outcome.fault.kind != Kind::None {
        report.count_fault(&facts.name, facts.means, "injected");
        report.count_injected();
    }
}
