//! A made-up set of images, the reference's samples of it, and the comparison with ours. How samples are requested is the caller's.

use std::{collections::BTreeMap, ffi::OsStr, fs, path::Path, path::PathBuf};

use regatta_prep::PrepReport;
use regatta_test_support::oracle;
use regatta_types::samples::Form;

/// Returns the data of a `.npy` without its header of 128 bytes.
pub(crate) fn data(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap().split_off(128)
}

/// A made-up set of images, and the reference's samples of it.
pub(crate) struct ReferenceImages {
    place: tempfile::TempDir,
    /// For each form, names and SHA-256 in the order of the samples.
    expected: BTreeMap<String, Vec<(String, String)>>,
}

impl ReferenceImages {
    /// Makes `count` images with the program `maker`, and their samples with `script`, for the benchmark `name` if the script wants one.
    pub(crate) fn new(python: &Path, maker: &str, script: &str, name: Option<&str>, count: usize) -> Self {
        let place = tempfile::tempdir().unwrap();
        let (images, int8) = (place.path().join("images"), place.path().join("int8"));
        fs::create_dir(&int8).unwrap();
        let call = |script: &str, arguments: &[&OsStr]| oracle::run(python, "opencv", script, arguments);
        call(maker, &[images.as_ref(), count.to_string().as_ref()]);
        let mut arguments: Vec<&OsStr> = vec![images.as_ref()];
        arguments.extend(name.map(OsStr::new));
        arguments.push(int8.as_ref());
        let mut expected: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for line in call(script, &arguments).lines() {
            let columns: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let [sha256, form, name] = <[String; 3]>::try_from(columns).unwrap();
            expected.entry(form).or_default().push((name, sha256));
        }
        Self { place, expected }
    }

    pub(crate) fn images(&self) -> PathBuf {
        self.place.path().join("images")
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.place.path().join("scratch")
    }

    /// Checks that each sample of a form has the reference's bytes, and removes ours: sets are large.
    pub(crate) fn assert_equal(&self, form: Form, report: &PrepReport) {
        let manifest = fs::read_to_string(report.dir.with_extension("sha256")).unwrap();
        fs::remove_dir_all(&report.dir).unwrap();
        let expected = &self.expected[&form.to_string()];
        assert_eq!(manifest.lines().count(), expected.len());
        let is_equal = |line: &str, name: &str, sha256: &str| {
            line.starts_with(sha256) && line.ends_with(&format!("/{name}.npy"))
        };
        let differing: Vec<&str> = manifest
            .lines()
            .zip(expected)
            .filter(|(line, (name, sha256))| !is_equal(line, name, sha256))
            .map(|(_, (name, _))| name.as_str())
            .collect();
        assert!(differing.is_empty(), "{form}: {differing:?} differ");
    }

    /// Checks that the 8-bit samples, of which the reference has every fourth, differ by one step at most. Returns how many numbers
    /// differ, and how many there are.
    pub(crate) fn count_steps(&self, report: &PrepReport) -> (usize, usize) {
        let (mut apart, mut total) = (0, 0);
        for (name, _) in self.expected["fp32_linear"].iter().step_by(4) {
            let file = format!("{name}.npy");
            let theirs = data(&self.place.path().join("int8").join(&file));
            let ours = data(&report.dir.join(&file));
            assert_eq!(ours.len(), theirs.len());
            total += ours.len();
            for (one, other) in ours.iter().zip(&theirs) {
                let steps = one.cast_signed().abs_diff(other.cast_signed());
                assert!(steps <= 1, "{name}: {steps} steps apart");
                apart += usize::from(steps);
            }
        }
        (apart, total)
    }
}
