//! The sample sets that LoadGen loads first, by seed and library sizes. They are cached for the complete check.

use std::sync::{Arc, Mutex, PoisonError};

use regatta_loadgen::{
    effective::EffectiveSettings,
    generate::{LoadableSet, loadable_sets},
    rng::RngAbi,
};
use regatta_types::Scenario;

use super::libcxx;

/// The largest number of cached sets.
const MAX_SETS: usize = 32;

/// A cache of the first set of samples per library and seed. Most runs of a submission share a few sets.
#[derive(Debug, Default)]
pub(super) struct LoadedSets(Mutex<Vec<(SetKey, Arc<LoadableSet>)>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SetKey {
    seed: u64,
    total: u64,
    count: u64,
    size: u64,
    padding: u64,
    library: Shuffle,
}

/// The implementation of `std::shuffle` that a LoadGen was built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shuffle {
    Gnu(RngAbi),
    Llvm,
}

impl LoadedSets {
    /// Returns the set that LoadGen loads first, or `None` if the sizes do not allow a set.
    pub(super) fn first(
        &self,
        settings: &EffectiveSettings,
        total: u64,
        count: u64,
        library: Shuffle,
    ) -> Option<Arc<LoadableSet>> {
        let padding = match settings.scenario {
            Scenario::MultiStream => settings.samples_per_query,
            _ => 0,
        };
        let key = SetKey {
            seed: settings.qsl_rng_seed,
            total,
            count,
            size: settings.performance_sample_count,
            padding,
            library,
        };
        let sets = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, set)) = sets().iter().find(|(known, _)| *known == key) {
            return Some(Arc::clone(set));
        }
        let abi = match library {
            Shuffle::Gnu(abi) => abi,
            Shuffle::Llvm => RngAbi::default(),
        };
        let mut set = loadable_sets(settings, total, count, abi)
            .ok()?
            .into_iter()
            .next()?;
        if library == Shuffle::Llvm {
            let order = libcxx::shuffled(usize::try_from(total.min(count)).ok()?, settings.qsl_rng_seed);
            let (samples, distinct) = (set.samples.len(), set.distinct);
            set.samples = order.into_iter().take(distinct).cycle().take(samples).collect();
        }
        let set = Arc::new(set);
        let mut sets = sets();
        // The limit bounds memory: a hostile tree can name any number of libraries.
        if sets.len() < MAX_SETS {
            sets.push((key, Arc::clone(&set)));
        }
        Some(set)
    }
}
