//! Results that take a while to compute. Each is kept for a moment, the longer the more it cost, and requests that come while it is computed
//! wait for it. Many readers of one page therefore cost as much as one.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use regatta_lab_store::{lab_error::LabError, workspace::Workspace};
use regatta_lab_views::comparisons::Runs;

/// The greatest age of a result, unless it took longer than a tenth of that to compute.
const FRESH: Duration = Duration::from_secs(10);
/// The ratio of a result's greatest age to the time that it took, and the limit of that age.
const AGE_PER_COST: u32 = 10;
const MAX_AGE: Duration = Duration::from_secs(300);
/// The greatest age of a failure, which the reader may just have fixed.
const FRESH_FAILURE: Duration = Duration::from_secs(1);
/// The number of results that are kept.
const MAX_RESULTS: usize = 8;

/// A result of a workspace and query, which is computed or being computed.
struct KeptResult<Q, R, E> {
    root: PathBuf,
    query: Q,
    computed: Arc<OnceLock<Computed<R, E>>>,
}

/// A result with the time until which it is kept.
struct Computed<R, E> {
    expires: Instant,
    result: Arc<Result<R, E>>,
}

/// The newest results of one kind, by their query.
pub(super) struct RecentResults<Q, R, E = LabError>(Mutex<VecDeque<KeptResult<Q, R, E>>>);

impl<Q: PartialEq + Clone, R, E> RecentResults<Q, R, E> {
    /// Creates a store without results.
    pub(super) const fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    /// Returns the result of a query on a workspace, computed now or a moment ago. It blocks, also while another request computes it.
    pub(super) fn of(
        &self,
        query: &Q,
        root: &Path,
        compute: impl FnOnce() -> Result<R, E>,
    ) -> Arc<Result<R, E>> {
        let kept = self.kept(query, root);
        let computed = kept.get_or_init(|| {
            let begun = Instant::now();
            let result = Arc::new(compute());
            let age = match &*result {
                Ok(_) => greatest_age(begun.elapsed()),
                Err(_) => FRESH_FAILURE,
            };
            Computed {
                expires: Instant::now() + age,
                result,
            }
        });
        Arc::clone(&computed.result)
    }

    fn kept(&self, query: &Q, root: &Path) -> Arc<OnceLock<Computed<R, E>>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_fresh = |one: &Computed<R, E>| one.expires > now;
        kept.retain(|one| one.computed.get().is_none_or(is_fresh));
        let is_meant = |one: &&KeptResult<Q, R, E>| one.root == root && one.query == *query;
        if let Some(one) = kept.iter().find(is_meant) {
            return Arc::clone(&one.computed);
        }
        let computed = Arc::default();
        kept.truncate(MAX_RESULTS - 1);
        kept.push_front(KeptResult {
            root: root.to_owned(),
            query: query.clone(),
            computed: Arc::clone(&computed),
        });
        computed
    }
}

impl<Q: PartialEq + Clone, R> RecentResults<Q, R> {
    /// Runs a query on a workspace's runs over a separate connection.
    pub(super) fn of_runs(
        &self,
        query: &Q,
        workspace: &Workspace,
        compute: impl FnOnce(&Runs<'_>) -> Result<R, LabError>,
    ) -> Arc<Result<R, LabError>> {
        self.of(query, workspace.root(), || {
            let store = workspace.store()?;
            compute(&Runs {
                rows: store.runs().all()?,
                workspace,
                store: &store,
            })
        })
    }
}

/// Returns the greatest age of a result that took this long.
fn greatest_age(cost: Duration) -> Duration {
    (cost * AGE_PER_COST).clamp(FRESH, MAX_AGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_computed_once_for_everybody_and_a_failure_not_for_long() {
        let results: RecentResults<u8, u32, String> = RecentResults::new();
        let root = Path::new("/lab");
        let of = |query: u8, result: Result<u32, &str>| {
            (*results.of(&query, root, || result.map_err(str::to_owned))).clone()
        };
        assert_eq!((of(1, Ok(1)), of(1, Ok(2))), (Ok(1), Ok(1)));
        assert_eq!(of(2, Err("nothing")), Err("nothing".to_owned()));
        std::thread::sleep(FRESH_FAILURE);
        assert_eq!(of(2, Ok(3)), Ok(3));
        for query in 3..40 {
            assert_eq!(of(query, Ok(query.into())), Ok(query.into()));
        }
        assert_eq!(results.0.lock().unwrap().len(), MAX_RESULTS);
    }

    #[test]
    fn expensive_results_are_kept_longer() {
        assert_eq!(greatest_age(Duration::from_millis(3)), FRESH);
        assert_eq!(greatest_age(Duration::from_secs(6)), Duration::from_secs(60));
        assert_eq!(greatest_age(Duration::from_secs(600)), MAX_AGE);
    }
}
