//! Damaged images of a dataset are listed all at once, and their samples are made on request.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

/// JPEGs of 40 x 24 pixels.
const BASELINE: &[u8] = include_bytes!("../../crates/prep/tests/four_colours.jpg");
const PROGRESSIVE: &[u8] = include_bytes!("../../crates/prep/tests/four_colours_progressive.jpg");

/// A workspace whose resnet50 has as many images as are written.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new(images: &[(&str, &[u8])]) -> Self {
        let place = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        assert!(place.regatta(&["init"]).status.success());
        let count = images.len();
        let benchmark = include_str!("../../configs/benchmarks/resnet50.toml")
            .replace("total_samples = 50000", &format!("total_samples = {count}"))
            .replace(
                "performance_samples = 1024",
                &format!("performance_samples = {count}"),
            )
            .replace("source_bytes = 6706560319", "");
        let configs = place.path("lab/configs/benchmarks");
        fs::create_dir_all(&configs).unwrap();
        fs::write(configs.join("resnet50.toml"), benchmark).unwrap();
        fs::create_dir(place.path("images")).unwrap();
        let mut labels = String::new();
        for (name, bytes) in images {
            fs::write(place.path("images").join(name), bytes).unwrap();
            labels.push_str(&format!("{name} 0\n"));
        }
        fs::write(place.path("images/val_map.txt"), labels).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn prep(&self, flags: &[&str]) -> Output {
        let images = self.path("images");
        let common = ["prep", "resnet50", "--data", images.to_str().unwrap()];
        self.regatta(&[&common, flags].concat())
    }

    fn regatta(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_regatta"))
            .args(arguments)
            .env("REGATTA_WORKSPACE", self.path("lab"))
            .env_remove("MLPERF_SCRATCH_PATH")
            .output()
            .unwrap()
    }
}

fn without_end(jpeg: &[u8]) -> &[u8] {
    jpeg.strip_suffix(b"\xff\xd9").unwrap()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns image, reason and whether it has a sample, of each damaged image of a document.
fn damaged(document: &Value) -> Vec<(&str, &str, bool)> {
    let entries = document["damaged"].as_array().unwrap().iter();
    entries
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap();
            (
                text("image"),
                text("reason"),
                one["has_sample"].as_bool().unwrap(),
            )
        })
        .collect()
}

#[test]
fn all_damaged_images_are_listed_and_their_samples_made_on_request() {
    let images = [
        ("a.JPEG", BASELINE),
        ("b.JPEG", &BASELINE[..300]),
        ("c.JPEG", PROGRESSIVE),
        ("d.JPEG", b"\x89PNG\r\n\x1a\n"),
        ("e.JPEG", &BASELINE[..330]),
    ];
    let place = Place::new(&images);
    let refused = place.prep(&["--format", "json"]);
    assert_eq!(refused.status.code(), Some(3));
    let listed = document(&refused);
    assert_eq!(listed["images"], 5);
    assert_eq!(
        damaged(&listed),
        [
            ("b.JPEG", "the image is truncated", true),
            (
                "d.JPEG",
                "it is not a readable PNG image: unexpected end of file",
                false
            ),
            ("e.JPEG", "the image is truncated", true),
        ]
    );
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(
        message.contains("3 of 5 images in") && message.contains("--accept-damaged"),
        "{message}"
    );

    // An image without any pixels has no sample in the reference either.
    let message = String::from_utf8(place.prep(&["--accept-damaged"]).stderr).unwrap();
    assert!(
        message.contains("1 of 5 images in") && !message.contains("--accept-damaged"),
        "{message}"
    );
    fs::write(place.path("images/d.JPEG"), BASELINE).unwrap();
    let accepted = place.prep(&["--accept-damaged", "--format", "json"]);
    assert!(accepted.status.success(), "{accepted:?}");
    let made = document(&accepted);
    assert_eq!((&made["samples"], &made["unchanged"]), (&5.into(), &4.into()));
    let names: Vec<&str> = damaged(&made).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["b.JPEG", "e.JPEG"]);
    assert!(
        Path::new(made["dir"].as_str().unwrap())
            .join("samples.json")
            .is_file()
    );
}

#[test]
fn a_message_names_ten_damaged_images_and_counts_the_others() {
    let names: Vec<String> = (0..13).map(|number| format!("{number:02}.JPEG")).collect();
    let images: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), &BASELINE[..300]))
        .collect();
    let place = Place::new(&images);
    let message = String::from_utf8(place.prep(&[]).stderr).unwrap();
    assert!(
        message.contains("09.JPEG") && !message.contains("10.JPEG") && message.contains("and 3 others"),
        "{message}"
    );
    let json = document(&place.prep(&["--format", "json"]));
    assert_eq!(damaged(&json).len(), 13);
    let accepted = String::from_utf8(place.prep(&["--accept-damaged"]).stdout).unwrap();
    assert!(
        accepted.contains("13 of the images are damaged") && accepted.contains("09.JPEG and 3 others"),
        "{accepted}"
    );
}

#[test]
fn images_without_an_end_marker_are_accepted_baseline_or_progressive() {
    let images = [
        ("a.JPEG", BASELINE),
        ("b.JPEG", without_end(BASELINE)),
        ("c.JPEG", PROGRESSIVE),
        ("d.JPEG", without_end(PROGRESSIVE)),
    ];
    let place = Place::new(&images);
    let made = place.prep(&["--format", "json"]);
    assert!(made.status.success(), "{made:?}");
    let made = document(&made);
    assert!(made.get("damaged").is_none());
    let sample = |name: &str| fs::read(Path::new(made["dir"].as_str().unwrap()).join(name)).unwrap();
    assert_eq!(sample("a.JPEG.npy"), sample("b.JPEG.npy"));
    assert_eq!(sample("c.JPEG.npy"), sample("d.JPEG.npy"));

    // The last scan of a progressive image is not missed by the decoder, but it changes pixels.
    let scan = PROGRESSIVE
        .windows(2)
        .rposition(|marker| marker == b"\xff\xda")
        .unwrap();
    fs::write(place.path("images/d.JPEG"), &PROGRESSIVE[..scan]).unwrap();
    let refused = place.prep(&["--format", "json"]);
    assert_eq!(
        damaged(&document(&refused)),
        [("d.JPEG", "the image is truncated", true)]
    );
}
