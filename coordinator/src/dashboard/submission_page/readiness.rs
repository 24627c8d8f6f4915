//! The readiness of the lab's runs for a submission: a preview of staging, without answers and without writing a tree.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use regatta_config::catalogue::RoundCatalogue;
use regatta_fsutil::hash::sha256_hex;
use regatta_submission::stage::{self, Answers, Kind, Request, StagedResult, StagingFinding};
use regatta_types::Division;

use crate::{
    runs::is_offered_for_staging,
    store::{self, Store},
    workspace::Workspace,
};

/// The greatest age of a preview. It reads the documents of every finished run.
const FRESH: Duration = Duration::from_secs(10);

/// The newest preview. Its lock lets one reader at a time make one.
static NEWEST: Mutex<Option<(PathBuf, Instant, Arc<Readiness>)>> = Mutex::new(None);

/// The readiness of the lab.
pub(in crate::dashboard) struct Readiness {
    /// The round.
    pub(super) round: String,
    /// The number of finished runs that were read.
    pub(super) runs: usize,
    /// The results that a tree would have.
    pub(super) results: Vec<StagedResult>,
    /// The findings: what is missing or not allowed.
    pub(super) findings: Vec<StagingFinding>,
    /// The trees that were staged and still exist.
    pub(super) trees: Vec<StagedTree>,
    /// The time when it was read, RFC 3339 UTC.
    pub(super) read: String,
}

/// A staged tree.
pub(in crate::dashboard) struct StagedTree {
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
    /// Returns the readiness of the lab, at most ten seconds old. It blocks.
    pub(in crate::dashboard) fn of(workspace: &Workspace) -> anyhow::Result<Arc<Self>> {
        let mut newest = NEWEST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((root, read, found)) = &*newest
            && root == workspace.root()
            && read.elapsed() < FRESH
        {
            return Ok(Arc::clone(found));
        }
        let found = Arc::new(Self::read(workspace)?);
        *newest = Some((workspace.root().to_owned(), Instant::now(), Arc::clone(&found)));
        Ok(found)
    }

    fn read(workspace: &Workspace) -> anyhow::Result<Self> {
        let store = Store::open(&workspace.database())?;
        let rounds = RoundCatalogue::read(Some(&workspace.configs()))?;
        let round = rounds.named(None)?;
        let rows = store.runs()?;
        // An incomplete run has nothing to stage.
        let complete = rows.iter().filter(|row| {
            is_offered_for_staging(row, &round.name)
                && row.outcome.as_ref().is_some_and(|outcome| outcome.complete)
        });
        let runs: Vec<PathBuf> = complete
            .map(|row| workspace.run(row.id).path().to_owned())
            .collect();
        let preview = stage::preview(&Request {
            round,
            division: Division::Closed,
            kind: Kind::Submission,
            answers: &Answers::default(),
            runs: &runs,
            keys: &store.public_keys()?,
            power: &[],
            output: Path::new(""),
        })?;
        let trees = store.staged_trees()?.into_iter();
        Ok(Self {
            round: round.name.clone(),
            runs: runs.len(),
            results: preview.results,
            findings: preview.findings,
            trees: trees
                .filter(|(path, ..)| path.is_dir())
                .map(|(path, staged, runs)| StagedTree {
                    key: key(&path),
                    path,
                    staged,
                    runs,
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
