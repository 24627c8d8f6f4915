//! The report of a lab to the campaign, and the final table.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::{Deserialize, Serialize};

use crate::{
    checker::Compared,
    plan::Kind,
    verdict::{AGENT_KIB, COORDINATOR_KIB},
};

/// The figures of one lab, or of several together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// The number of injected faults of each kind.
    pub(crate) injected: Vec<(Kind, u64)>,
    /// The number of runs in each final phase.
    pub(crate) phases: BTreeMap<String, u64>,
    /// The number of compared files.
    pub(crate) files: u64,
    /// The number of bytes in them.
    pub(crate) bytes: u64,
    /// Files of runs that report themselves as incomplete, because a full disk prevented the evidence.
    pub(crate) reported_incomplete: u64,
    /// Runs that the device removed after their release to free space.
    pub(crate) freed_space: u64,
    /// The number of daemons that ended by themselves with a reason and were restarted.
    pub(crate) restarts: u64,
    /// Peak resident memory of the agent, in KiB.
    pub(crate) agent_peak_kib: u64,
    /// Peak resident memory of the coordinator, in KiB.
    pub(crate) coordinator_peak_kib: u64,
    /// Seconds from the last fault until every run had ended.
    pub(crate) drain_s: f64,
    /// Total seconds.
    pub(crate) seconds: f64,
}

/// The report on a lab's standard output.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LabReport {
    /// The lab's figures.
    pub(crate) totals: Totals,
    /// All violations.
    pub(crate) wrong: Vec<String>,
}

impl Totals {
    /// Counts faults of a kind.
    pub(crate) fn count(&mut self, kind: Kind, times: u64) {
        match self.injected.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += times,
            None => self.injected.push((kind, times)),
        }
    }

    /// Adds the figures of another lab.
    pub(crate) fn add(&mut self, other: &Self) {
        for (kind, times) in &other.injected {
            self.count(*kind, *times);
        }
        for (phase, count) in &other.phases {
            *self.phases.entry(phase.clone()).or_default() += count;
        }
        self.files += other.files;
        self.bytes += other.bytes;
        self.reported_incomplete += other.reported_incomplete;
        self.freed_space += other.freed_space;
        self.restarts += other.restarts;
        self.agent_peak_kib = self.agent_peak_kib.max(other.agent_peak_kib);
        self.coordinator_peak_kib = self.coordinator_peak_kib.max(other.coordinator_peak_kib);
        self.drain_s = self.drain_s.max(other.drain_s);
        self.seconds += other.seconds;
    }

    /// Adds what was compared in a run.
    pub(crate) const fn add_compared(&mut self, compared: &Compared) {
        self.files += compared.files;
        self.bytes += compared.bytes;
        self.reported_incomplete += compared.reported_incomplete;
    }

    /// Returns the total number of faults.
    pub(crate) fn faults(&self) -> u64 {
        self.injected.iter().map(|(_, count)| count).sum()
    }

    fn of(&self, kind: Kind) -> u64 {
        self.injected
            .iter()
            .filter(|(known, _)| *known == kind)
            .map(|(_, count)| count)
            .sum()
    }
}

/// Returns the table in Markdown: a row per kind of fault, a column per broker, and the number of losses.
pub(crate) fn table(embedded: &Totals, mosquitto: &Totals, wrong: usize) -> String {
    let mut kinds: Vec<Kind> = embedded
        .injected
        .iter()
        .chain(&mosquitto.injected)
        .map(|(kind, _)| *kind)
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut rows: Vec<[String; 4]> = vec![["fault", "made by", "embedded", "mosquitto"].map(str::to_owned)];
    let mut row = |what: &str, means: &str, of: &dyn Fn(&Totals) -> String| {
        rows.push([what.to_owned(), means.to_owned(), of(embedded), of(mosquitto)]);
    };
    for kind in kinds {
        row(&kind.to_string(), kind.means(), &|totals| {
            totals.of(kind).to_string()
        });
    }
    row("**faults injected**", "", &|totals| {
        format!("**{}**", totals.faults())
    });
    for phase in ["done", "failed", "aborted"] {
        row(&format!("runs {phase}"), "", &|totals| {
            totals.phases.get(phase).copied().unwrap_or(0).to_string()
        });
    }
    row("files compared with what was written", "", &|totals| {
        totals.files.to_string()
    });
    row("MiB in them", "", &|totals| {
        format!("{:.1}", as_mib(totals.bytes))
    });
    row(
        "files of runs that say that they are incomplete",
        "a full disk",
        &|totals| totals.reported_incomplete.to_string(),
    );
    row(
        "released runs that made room on the device",
        "a full disk",
        &|totals| totals.freed_space.to_string(),
    );
    row(
        "daemons that gave up, saying why, and were started again",
        "a full disk, no broker",
        &|totals| totals.restarts.to_string(),
    );
    row(
        "peak memory of the agent, KiB",
        &format!("bound {AGENT_KIB}"),
        &|totals| totals.agent_peak_kib.to_string(),
    );
    row(
        "peak memory of the coordinator, KiB",
        &format!("bound {COORDINATOR_KIB}"),
        &|totals| totals.coordinator_peak_kib.to_string(),
    );
    row(
        "longest wait for the last run after the last fault, s",
        "",
        &|totals| format!("{:.0}", totals.drain_s),
    );
    let mut text = aligned(&rows);
    let _ = writeln!(text, "\nLost, doubled, unequal or left over: **{wrong}**");
    text
}

fn as_mib(bytes: u64) -> f64 {
    // Exact up to 2^53 bytes.
    bytes as f64 / f64::from(1 << 20)
}

fn aligned(rows: &[[String; 4]]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2), width(3)];
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let _ = writeln!(
            text,
            "| {:<w0$} | {:<w1$} | {:>w2$} | {:>w3$} |",
            row[0],
            row[1],
            row[2],
            row[3],
            w0 = widths[0],
            w1 = widths[1],
            w2 = widths[2],
            w3 = widths[3]
        );
        if number == 0 {
            let dashes = |width: usize| "-".repeat(width);
            let _ = writeln!(
                text,
                "| {} | {} | {}: | {}: |",
                dashes(widths[0]),
                dashes(widths[1]),
                dashes(widths[2] - 1),
                dashes(widths[3] - 1)
            );
        }
    }
    text
}
