//! The report of a lab to the campaign, and the table of all.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::{Deserialize, Serialize};

use crate::{plan::Kind, session::Outcome};

/// The figures of one kind of fault.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Faults that were injected.
    pub(crate) injected: u64,
    /// Sessions that ended before the fault had a target.
    pub(crate) late: u64,
    /// Sessions that were refused before they began.
    pub(crate) refused: u64,
    /// Sessions with a reason, or with the verdict `fail`.
    pub(crate) failed: u64,
    /// Sessions that were good in spite of the fault, or after it.
    pub(crate) good: u64,
    /// The longest time from a fault to the first word about it, in seconds, of sessions that were not good.
    pub(crate) longest_s: f64,
    /// Seconds of all sessions.
    pub(crate) seconds: f64,
}

/// The figures of a lab, or of several.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LabReport {
    /// The figures by kind of fault.
    pub(crate) kinds: Vec<(Kind, Figures)>,
    /// Every violation.
    pub(crate) wrong: Vec<String>,
    /// Files of earlier sessions that were compared.
    pub(crate) files: u64,
}

impl LabReport {
    /// Adds a session.
    pub(crate) fn count(&mut self, outcome: &Outcome) {
        let mut figures = Figures {
            seconds: outcome.whole.as_secs_f64(),
            ..Figures::default()
        };
        match outcome.injected {
            Some(_) => figures.injected = 1,
            None => figures.late = 1,
        }
        match (&outcome.row, outcome.is_good()) {
            (_, true) => figures.good = 1,
            (None, _) => figures.refused = 1,
            (Some(_), _) => {
                figures.failed = 1;
                figures.longest_s = outcome.until_found.as_secs_f64();
            }
        }
        self.add_kind(outcome.fault.kind, &figures);
    }

    fn add_kind(&mut self, kind: Kind, other: &Figures) {
        let place = self
            .kinds
            .iter()
            .position(|(known, _)| *known == kind)
            .unwrap_or_else(|| {
                self.kinds.push((kind, Figures::default()));
                self.kinds.len() - 1
            });
        let Some((_, figures)) = self.kinds.get_mut(place) else {
            return;
        };
        figures.injected += other.injected;
        figures.late += other.late;
        figures.refused += other.refused;
        figures.failed += other.failed;
        figures.good += other.good;
        figures.longest_s = figures.longest_s.max(other.longest_s);
        figures.seconds += other.seconds;
    }

    /// Adds the report of another lab.
    pub(crate) fn add(&mut self, other: &Self) {
        for (kind, figures) in &other.kinds {
            self.add_kind(*kind, figures);
        }
        self.wrong.extend(other.wrong.iter().cloned());
        self.files += other.files;
    }

    /// Returns the faults that were injected.
    pub(crate) fn faults(&self) -> u64 {
        self.kinds.iter().map(|(_, figures)| figures.injected).sum()
    }

    /// Returns the table in Markdown.
    pub(crate) fn table(&self) -> String {
        let mut kinds: BTreeMap<Kind, &Figures> = BTreeMap::new();
        kinds.extend(self.kinds.iter().map(|(kind, figures)| (*kind, figures)));
        let mut text = "| fault | made by | injected | refused | failed | good | longest s |\n|---|---|---:|---:|---:|---:|---:|\n".to_owned();
        for (kind, figures) in kinds {
            let Figures {
                injected,
                refused,
                failed,
                good,
                longest_s,
                ..
            } = figures;
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "| {kind} | {} | {injected} | {refused} | {failed} | {good} | {longest_s:.0} |",
                kind.means()
            );
        }
        let _ = writeln!(
            text,
            "\nFiles of earlier sessions compared: {}. Violations: **{}**",
            self.files,
            self.wrong.len()
        );
        text
    }
}
