//! Bad datasets of JPEG images get one sentence with the file and a remedy, and leave nothing that looks complete.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_catalogue::known;
use regatta_prep::{ImageRequest, PrepError, PrepReport, prepare_images, verify_samples};
use regatta_types::{
    benchmark::{Benchmark, Prep},
    samples::SampleSet,
};
use tempfile::TempDir;

/// A JPEG of 40 x 24 pixels, 348 bytes, which Pillow made of rectangles.
const JPEG: &[u8] = include_bytes!("four_colours.jpg");

/// Three images with their labels, and the benchmark for them.
struct Dataset {
    benchmark: Benchmark,
    dir: TempDir,
}

impl Dataset {
    fn new() -> Self {
        let mut benchmarks = known::benchmarks().unwrap();
        benchmarks.retain(|benchmark| benchmark.name == "resnet50");
        let mut benchmark = benchmarks.remove(0);
        benchmark.dataset.total_samples = 3;
        benchmark.dataset.performance_samples = 3;
        let mut dataset = Self {
            benchmark,
            dir: tempfile::tempdir().unwrap(),
        };
        fs::create_dir_all(dataset.images()).unwrap();
        for name in ["a.JPEG", "b.JPEG", "c.JPEG"] {
            dataset.write(name, JPEG);
        }
        dataset.write("val_map.txt", b"a.JPEG 0\nb.JPEG 999\nc.JPEG 65\n");
        dataset.set_source_bytes(Some(3 * JPEG.len() as u64));
        dataset
    }

    fn set_source_bytes(&mut self, bytes: Option<u64>) {
        let Some(Prep::JpegImages(kind)) = &mut self.benchmark.prep else {
            unreachable!("resnet50 is made of images")
        };
        kind.source_bytes = bytes;
    }

    fn images(&self) -> PathBuf {
        self.dir.path().join("val")
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.images().join(name), bytes).unwrap();
    }

    fn prepare(&self, calibration: Option<&Path>) -> Result<PrepReport, PrepError> {
        let images = self.images();
        let request = ImageRequest {
            benchmark: &self.benchmark,
            form: self.benchmark.form(),
            quantised: None,
            data: &images,
            labels: None,
            calibration,
            accepts_damaged: false,
        };
        prepare_images(&request, self.dir.path(), &mut |_, _| {})
    }

    /// Prepares and returns the error with its causes, after checking that neither document nor map exists.
    fn error(&self) -> String {
        let error = self.prepare(None).unwrap_err();
        let samples = self.dir.path().join(&self.benchmark.dataset.dir);
        assert!(!samples.join(SampleSet::FILE).exists());
        assert!(!self.dir.path().join(&self.benchmark.dataset.map).exists());
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text.replace(&self.dir.path().display().to_string(), "DIR")
    }
}

#[test]
fn a_set_is_made_once_verified_and_repaired() {
    let dataset = Dataset::new();
    let report = dataset.prepare(None).unwrap();
    assert_eq!((report.samples, report.unchanged), (3, 0));
    let map = fs::read_to_string(&report.map).unwrap();
    assert_eq!(map, "a.JPEG 0\nb.JPEG 999\nc.JPEG 65\n");
    assert_eq!(dataset.prepare(None).unwrap().unchanged, 3);
    let verify = || verify_samples(&report.dir, None, &mut |_, _| {}).unwrap();
    assert!(verify().is_equal());
    let sample = report.dir.join("b.JPEG.npy");
    let mut bytes = fs::read(&sample).unwrap();
    bytes[5000] ^= 1;
    fs::write(&sample, bytes).unwrap();
    fs::remove_file(report.dir.join("c.JPEG.npy")).unwrap();
    let found = verify();
    assert_eq!(
        (found.differing, found.missing),
        (vec!["b.JPEG.npy".to_owned()], vec!["c.JPEG.npy".to_owned()])
    );
    assert_eq!(dataset.prepare(None).unwrap().unchanged, 1);
    assert!(verify().is_equal());
}

#[test]
fn a_manifest_that_lacks_lines_is_refused() {
    let dataset = Dataset::new();
    let report = dataset.prepare(None).unwrap();
    for kept in [
        "",
        "0000000000000000000000000000000000000000000000000000000000000000  fp32/a.JPEG.npy\n",
    ] {
        let manifest = dataset.dir.path().join("short.sha256");
        fs::write(&manifest, kept).unwrap();
        let error = verify_samples(&report.dir, Some(&manifest), &mut |_, _| {}).unwrap_err();
        assert!(
            matches!(error, PrepError::ManifestLength { expected: 3, .. }),
            "{error}"
        );
    }
}

/// Returns the names of the arrays in a directory, sorted.
fn arrays(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut arrays: Vec<String> = names.filter(|name| name.ends_with(".npy")).collect();
    arrays.sort();
    arrays
}

#[test]
fn a_calibration_list_gets_a_directory_of_its_own() {
    let dataset = Dataset::new();
    let list = dataset.dir.path().join("list.txt");
    fs::write(&list, "c.JPEG\na.JPEG\n").unwrap();
    let report = dataset.prepare(Some(&list)).unwrap();
    assert_eq!(report.samples, 2);
    assert!(report.dir.ends_with("list_fp32_linear"), "{:?}", report.dir);
    let other = dataset.dir.path().join("other.txt");
    fs::write(&other, "b.JPEG\n").unwrap();
    let other = dataset.prepare(Some(&other)).unwrap();
    assert_ne!((&other.dir, &other.map), (&report.dir, &report.map));
    assert_eq!(fs::read_to_string(&report.map).unwrap(), "c.JPEG 65\na.JPEG 0\n");
    // Engines calibrate with all arrays of the directory.
    fs::write(&list, "a.JPEG\n").unwrap();
    let shorter = dataset.prepare(Some(&list)).unwrap();
    assert_eq!((shorter.samples, &shorter.dir), (1, &report.dir));
    assert_eq!(arrays(&shorter.dir), ["a.JPEG.npy"]);
    assert_eq!(arrays(&other.dir), ["b.JPEG.npy"]);
    fs::write(&list, "c.JPEG\nd.JPEG\n").unwrap();
    let error = dataset.prepare(Some(&list)).unwrap_err().to_string();
    assert!(
        error.contains("list.txt, line 2: d.JPEG is on an earlier line or not among the labels"),
        "{error}"
    );
}

#[test]
fn bad_datasets_are_named_with_a_remedy() {
    let mut errors = Vec::new();
    let mut note = |title: &str, change: &dyn Fn(&mut Dataset)| {
        let mut dataset = Dataset::new();
        change(&mut dataset);
        errors.push(format!("{title}: {}", dataset.error()));
    };
    note("no directory", &|set| fs::remove_dir_all(set.images()).unwrap());
    note("no labels", &|set| {
        fs::remove_file(set.images().join("val_map.txt")).unwrap()
    });
    note("too few labels", &|set| set.write("val_map.txt", b"a.JPEG 0\n"));
    note("no classes", &|set| {
        set.write("val_map.txt", b"a.JPEG\nb.JPEG\nc.JPEG\n")
    });
    note("classes from 1", &|set| {
        set.write("val_map.txt", b"a.JPEG 1\nb.JPEG 1000\nc.JPEG 66\n")
    });
    note("an image twice", &|set| {
        set.write("val_map.txt", b"a.JPEG 1\nb.JPEG 2\na.JPEG 1\n")
    });
    note("another directory", &|set| {
        set.write("val_map.txt", b"a.JPEG 1\n../b.JPEG 2\nc.JPEG 1\n")
    });
    note("a missing image", &|set| {
        fs::remove_file(set.images().join("b.JPEG")).unwrap()
    });
    note("a changed image", &|set| {
        set.write("b.JPEG", &[JPEG, &[0]].concat())
    });
    let quietly = |name: &str, bytes: &[u8], set: &mut Dataset| {
        set.set_source_bytes(None);
        set.write(name, bytes);
    };
    note("truncated", &|set| quietly("b.JPEG", &JPEG[..300], set));
    note("empty", &|set| quietly("b.JPEG", b"", set));
    note("a PNG", &|set| quietly("c.JPEG", b"\x89PNG\r\n\x1a\n", set));
    note("damaged", &|set| {
        let mut bytes = JPEG.to_vec();
        // An early end of the image.
        bytes[312..314].copy_from_slice(b"\xff\xd9");
        quietly("a.JPEG", &bytes, set);
    });
    insta::assert_snapshot!(errors.join("\n"));
}
