//! The readiness of the lab's runs for a submission: a preview of staging, without answers and without writing a tree.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use regatta_catalogue::{catalogue::Catalogue, round::SystemCategory};
use regatta_fsutil::hash::sha256_hex;
use regatta_submission_stage::stage::{self, Answers, Kind, StagedResult, StagingFinding, StagingRequest};
use regatta_types::{Division, RunId};

use crate::recent_results::RecentResults;
use regatta_lab_runs::is_offered_for_staging;
use regatta_lab_store::{self as store, RunRow, workspace::Workspace};
use regatta_lab_views::submission_status::{StatusRequest, SubmissionStatus, submission_status};

/// The newest preview. It reads the documents of every finished run.
static NEWEST: RecentResults<(), Readiness, anyhow::Error> = RecentResults::new();

/// The readiness of the lab.
pub(crate) struct Readiness {
    pub(super) round: String,
    /// The progress of every measured benchmark, computed from the store alone.
    pub(super) progress: SubmissionStatus,
    /// The number of finished runs that were read.
    pub(super) runs: usize,
    /// The results that a tree would have.
    pub(super) results: Vec<StagedResult>,
    /// The runs of the results.
    pub(super) rows: BTreeMap<RunId, RunRow>,
    /// The findings: what is missing or not allowed.
    pub(super) findings: Vec<StagingFinding>,
    /// The trees that were staged and still exist.
    pub(super) trees: Vec<StagedTree>,
    /// The time when it was read, RFC 3339 UTC.
    pub(super) read: String,
}

pub(crate) struct StagedTree {
    /// Its name in URLs.
    pub(super) key: String,
    /// Its directory.
    pub(super) path: PathBuf,
    /// The time when it was staged, RFC 3339 UTC.
    pub(super) staged: String,
    /// The number of its runs that the store has.
    pub(super) runs: u64,
}

impl Readiness {
    /// Returns the readiness of the lab, read now or a moment ago. It blocks.
    pub(crate) fn of(workspace: &Workspace) -> Arc<anyhow::Result<Self>> {
        NEWEST.of(&(), workspace.root(), || Self::read(workspace))
    }

    fn read(workspace: &Workspace) -> anyhow::Result<Self> {
        let store = workspace.store()?;
        let catalogue = Catalogue::read(Some(&workspace.configs()))?;
        let round = catalogue.round(None)?;
        let request = StatusRequest {
            round,
            category: SystemCategory::Edge,
            devices: &[],
            benchmarks: &[],
            power: None,
        };
        let progress = submission_status(&request, &catalogue, &store)?;
        let rows = store.runs().all()?;
        // An incomplete run has nothing to stage.
        let complete = rows.iter().filter(|row| {
            is_offered_for_staging(row, &round.name)
                && row.outcome.as_ref().is_some_and(|outcome| outcome.complete)
        });
        let runs: Vec<PathBuf> = complete
            .map(|row| workspace.run(row.id).path().to_owned())
            .collect();
        let preview = stage::preview(&StagingRequest {
            round,
            division: Division::Closed,
            kind: Kind::Submission,
            answers: &Answers::default(),
            runs: &runs,
            keys: &store.devices().public_keys()?,
            power: &[],
            output: Path::new(""),
        })?;
        let trees = store.staged_runs().trees()?.into_iter();
        let runs_of_results = preview.results.iter().flat_map(|result| {
            let audits = result.audits.values().copied();
            [result.performance, result.accuracy].into_iter().chain(audits)
        });
        let mut known: BTreeMap<RunId, RunRow> = rows.into_iter().map(|row| (row.id, row)).collect();
        let rows = runs_of_results
            .filter_map(|run| known.remove_entry(&run))
            .collect();
        Ok(Self {
            round: round.name.clone(),
            progress,
            runs: runs.len(),
            results: preview.results,
            rows,
            findings: preview.findings,
            trees: trees
                .filter(|tree| tree.path.is_dir())
                .map(|tree| StagedTree {
                    key: key(&tree.path),
                    path: tree.path,
                    staged: tree.staged,
                    runs: tree.runs,
                })
                .collect(),
            read: store::now(),
        })
    }
}

/// Makes both packages with a one-line program, by the packaging script.
pub(super) fn key(path: &Path) -> String {
    sha256_hex(path.to_string_lossy().as_bytes())
        .chars()
        .take(16)
        .collect()
}
