//! Results that take a while to compute from the store: one at a time, over a connection of their own, and kept for a moment. So neither live
//! pages nor devices wait for them, and many readers of one page cost as much as one.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{comparisons::Runs, exit::Failure, store::Store, workspace::Workspace};

/// The greatest age of a result.
const FRESH: Duration = Duration::from_secs(10);
/// The number of results that are kept.
const MOST: usize = 8;

/// A result with its device, benchmark and scenario.
struct KeptResult<Q, R> {
    root: PathBuf,
    query: Q,
    computed: Instant,
    result: Arc<R>,
}

/// The newest results of one kind, by their query.
pub(super) struct RecentResults<Q, R>(Mutex<VecDeque<KeptResult<Q, R>>>);

impl<Q: PartialEq + Clone, R> RecentResults<Q, R> {
    /// Creates a store without results.
    pub(super) const fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    /// Returns the result of a query, at most ten seconds old. It blocks.
    ///
    /// # Errors
    /// Returns the error of `compute` or of the store. Errors are not kept.
    pub(super) fn of(
        &self,
        query: &Q,
        workspace: &Workspace,
        compute: impl FnOnce(&Runs<'_>) -> Result<R, Failure>,
    ) -> Result<Arc<R>, Failure> {
        // The lock lets one reader at a time compute. A panic leaves nothing half changed.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|one| one.computed.elapsed() < FRESH);
        let is_meant = |one: &&KeptResult<Q, R>| one.root == workspace.root() && one.query == *query;
        if let Some(one) = kept.iter().find(is_meant) {
            return Ok(Arc::clone(&one.result));
        }
        let store = Store::open(&workspace.database())?;
        let result = Arc::new(compute(&Runs {
            rows: store.runs()?,
            workspace,
            store: &store,
        })?);
        kept.truncate(MOST - 1);
        kept.push_front(KeptResult {
            root: workspace.root().to_owned(),
            query: query.clone(),
            computed: Instant::now(),
            result: Arc::clone(&result),
        });
        Ok(result)
    }
}
