//! The samples in a directory: whether they are complete, and their size now and when they are complete.

use std::{fs, path::Path};

use regatta_types::{benchmark::Benchmark, documents::Document as _, samples::SampleSet};

/// The size of a `.npy` header in bytes.
const NPY_HEADER: u64 = 128;

/// Returns whether the samples in a directory are complete, have the inputs of the benchmark's model, and satisfy `is_expected`.
pub(super) fn is_complete(
    directory: &Path,
    formed: &Benchmark,
    is_expected: impl Fn(&SampleSet) -> bool,
) -> bool {
    let document = fs::read(directory.join(SampleSet::FILE)).ok();
    let set = document.and_then(|bytes| SampleSet::from_json(&bytes).ok());
    SampleSet::check_whole(directory).is_ok()
        && set.is_some_and(|set| set.check(&formed.model).is_ok() && is_expected(&set))
}

/// Predicts the size of a set of samples in bytes. Returns `None` if the samples differ in size.
pub(super) fn sample_bytes(formed: &Benchmark, samples: usize) -> Option<u64> {
    if formed.model.windows.is_some() {
        return None;
    }
    let sample = u64::try_from(formed.model.sample_bytes()?).ok()?;
    u64::try_from(samples)
        .ok()?
        .checked_mul(sample.checked_add(NPY_HEADER)?)
}

/// Returns the size in bytes of a file, or of all files below a directory. What cannot be read does not count.
pub(super) fn present_bytes(path: &Path) -> u64 {
    let Ok(found) = fs::metadata(path) else { return 0 };
    if !found.is_dir() {
        return found.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| present_bytes(&entry.path())).sum()
}
