//! The result of a preparation or of a dry run, as a table for people and a document for programs.

use serde_json::{Value, json};

use super::{
    plan::{Obstacle, Step},
    space::DiskNeed,
};
use crate::tables;
use regatta_lab_views::wording;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepState {
    /// It was not executed.
    Planned,
    Done,
    Failed,
}

impl StepState {
    const fn word(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// A benchmark with its steps and obstacles.
#[derive(Debug)]
pub(super) struct BenchmarkReport {
    pub(super) benchmark: String,
    pub(super) steps: Vec<(Step, StepState)>,
    pub(super) obstacles: Vec<Obstacle>,
}

#[derive(Debug)]
pub(super) struct Report {
    pub(super) benchmarks: Vec<BenchmarkReport>,
    pub(super) disks: Vec<DiskNeed>,
    pub(super) is_dry_run: bool,
    /// Whether devices can download files from this workspace.
    pub(super) serves_assets: bool,
}

impl Report {
    /// Returns whether every benchmark is complete once its steps are done.
    pub(super) fn is_complete(&self) -> bool {
        self.benchmarks
            .iter()
            .all(|benchmark| benchmark.obstacles.is_empty())
    }

    fn has_no_steps(&self) -> bool {
        self.benchmarks.iter().all(|benchmark| benchmark.steps.is_empty())
    }

    pub(super) fn document(&self) -> Value {
        let benchmarks: Vec<Value> = self.benchmarks.iter().map(BenchmarkReport::document).collect();
        let disks = self.disks.iter().map(|need| {
            json!({ "directory": need.directory, "bytes": need.bytes, "available_bytes": need.available })
        });
        json!({
            "benchmarks": benchmarks,
            "complete": self.is_complete(),
            "dry_run": self.is_dry_run,
            "disks": disks.collect::<Vec<_>>(),
            "serves_assets": self.serves_assets,
        })
    }

    pub(super) fn text(&self) -> String {
        let mut lines = Vec::new();
        if !self.has_no_steps() {
            let rows = self.benchmarks.iter().flat_map(|benchmark| benchmark.rows());
            lines.push(tables::plain(["benchmark", "step", "of", "adds", "state"], rows));
        }
        for benchmark in &self.benchmarks {
            lines.extend(benchmark.obstacles.iter().map(|obstacle| {
                format!(
                    "{}: missing: {}\n  {}",
                    benchmark.benchmark, obstacle.what, obstacle.hint
                )
            }));
        }
        if self.is_dry_run {
            lines.extend(self.disks.iter().map(|need| {
                format!(
                    "the disk of {}: {} needed, {} may be used",
                    need.directory.display(),
                    wording::bytes(need.bytes),
                    wording::bytes(need.available)
                )
            }));
        }
        if self.has_no_steps() && self.is_complete() {
            let names: Vec<&str> = self.benchmarks.iter().map(|one| one.benchmark.as_str()).collect();
            lines.push(format!("nothing to do: {} is prepared", names.join(", ")));
        }
        if !self.serves_assets {
            lines.push(
                "this workspace serves no assets, so devices need their own copies of these files: docs/assets.md"
                    .to_owned(),
            );
        }
        lines.join("\n")
    }
}

impl BenchmarkReport {
    fn document(&self) -> Value {
        let steps = self.steps.iter().map(|(step, state)| {
            json!({
                "step": step.action.word(),
                "of": step.subject,
                "target": step.target,
                "bytes": step.bytes,
                "state": state.word(),
            })
        });
        let missing = self
            .obstacles
            .iter()
            .map(|obstacle| json!({ "what": obstacle.what, "hint": obstacle.hint }));
        json!({
            "benchmark": self.benchmark,
            "steps": steps.collect::<Vec<_>>(),
            "missing": missing.collect::<Vec<_>>(),
        })
    }

    fn rows(&self) -> impl Iterator<Item = [String; 5]> {
        self.steps.iter().map(|(step, state)| {
            [
                self.benchmark.clone(),
                step.action.word().to_owned(),
                step.subject.clone(),
                step.bytes.map_or_else(|| "?".to_owned(), wording::bytes),
                state.word().to_owned(),
            ]
        })
    }
}
