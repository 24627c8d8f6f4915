//! Recognises the published calibration lists by their SHA-256. The closed division allows only these for quantization
//! (`inference_rules.adoc`, "Quantization"). Other lists are accepted, too.

use std::path::Path;

use regatta_fsutil::hash::{hex, sha256_of_file};
use regatta_types::benchmark::{Benchmark, DownloadPurpose};

use crate::exit::Failure;

/// Returns the name under which the list at `path` is published, or `None` for any other list.
///
/// # Errors
/// Returns an error when the file cannot be read.
pub(super) fn published_name(benchmark: &Benchmark, path: &Path) -> Result<Option<String>, Failure> {
    let unreadable = |error| Failure::could_not(format!("{} cannot be read: {error}", path.display()));
    let sha256 = hex(&sha256_of_file(path).map_err(unreadable)?.sha256);
    let lists = benchmark
        .downloads
        .iter()
        .filter(|download| download.purpose == DownloadPurpose::Calibration);
    // A checksum reads `NAME sha256:HEX`.
    let mut checksums = lists.flat_map(|list| &list.checksums);
    Ok(checksums.find_map(|checksum| {
        let (name, published) = checksum.split_once(" sha256:")?;
        (published == sha256).then(|| name.to_owned())
    }))
}

/// Describes a list of a benchmark by its [`published_name`].
pub(super) fn describe(benchmark: &str, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("calibration list: {name}, as published by MLCommons"),
        None => format!(
            "calibration list: not a published one of {benchmark}; the closed division requires one of those that `regatta data show {benchmark}` lists"
        ),
    }
}

#[cfg(test)]
mod tests {
    use regatta_catalogue::catalogue::Catalogue;
    use regatta_fsutil::hash::sha256_hex;

    use super::*;

    #[test]
    fn a_published_list_has_its_name_and_a_changed_one_none() {
        let catalogue = Catalogue::read(None).unwrap();
        let mut benchmark = catalogue.benchmark("resnet50").unwrap().clone();
        let published = "ILSVRC2012_val_00000009.JPEG\n";
        let lists = benchmark.downloads.iter_mut();
        let list = lists
            .into_iter()
            .find(|one| one.purpose == DownloadPurpose::Calibration);
        list.unwrap().checksums[1] = format!("second.txt sha256:{}", sha256_hex(published.as_bytes()));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), published).unwrap();
        let name = published_name(&benchmark, file.path()).unwrap();
        assert_eq!(name.as_deref(), Some("second.txt"));
        std::fs::write(file.path(), "ILSVRC2012_val_00000010.JPEG\n").unwrap();
        let name = published_name(&benchmark, file.path()).unwrap();
        assert_eq!(name, None);
        assert!(describe("resnet50", None).contains("not a published one of resnet50"));
        assert!(published_name(&benchmark, Path::new("/nonexistent")).is_err());
    }
}
