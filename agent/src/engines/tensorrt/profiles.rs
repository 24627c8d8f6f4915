//! Which of several engines that are the same but for their optimisation profiles. Any other difference is the user's to decide.

use std::path::PathBuf;

use regatta_tensorrt::{CacheEntry, EngineManifest};

/// Of engines that differ in nothing but their profiles, keeps the one with just enough for so many contexts; with none that has,
/// or with another difference, all.
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
