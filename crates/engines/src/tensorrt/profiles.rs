//! Selection between engines that only differ in their number of optimisation profiles. The user must resolve any other
//! difference.

use std::path::PathBuf;

use regatta_tensorrt::{CacheEntry, EngineManifest};

/// Keeps the engine with the fewest profiles that suffice for `contexts`. Keeps all engines if none has enough
/// profiles, or if they differ otherwise.
pub(super) fn keep_just_enough(engines: &mut Vec<(PathBuf, CacheEntry)>, contexts: usize) {
    let but_profiles = |entry: &CacheEntry| EngineManifest {
        profiles: 0,
        ..entry.manifest.clone()
    };
    let are_alike = engines
        .windows(2)
        .all(|pair| but_profiles(&pair[0].1) == but_profiles(&pair[1].1));
    let profiles = |entry: &CacheEntry| entry.manifest.profiles as usize;
    let counts = engines.iter().map(|(_, entry)| profiles(entry));
    let just_enough = counts.filter(|&count| count >= contexts).min();
    if let Some(best) = just_enough.filter(|_| are_alike) {
        engines.retain(|(_, entry)| profiles(entry) == best);
    }
}
