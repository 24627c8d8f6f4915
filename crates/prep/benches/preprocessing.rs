//! Preprocessing of JPEG images beside the reference's libraries, on one processor, in turns: `cargo bench -p regatta-prep --bench
//! preprocessing [-- BENCHMARK...]`. Both read the files, and leave the elements of fp32 in memory. Processor time, not elapsed time,
//! is compared.

#![expect(clippy::unwrap_used, reason = "a bench ends where it cannot measure")]

use std::{
    env,
    ffi::OsStr,
    fs,
    hint::black_box,
    path::{Path, PathBuf},
    process::Command,
};

use regatta_catalogue::known;
use regatta_prep::ImageSampleMaker;
use regatta_test_support::oracle;
use regatta_types::{benchmark::Dtype, layout::Layout, samples::Form};
use rustix::time::{ClockId, clock_gettime};

/// Generated photographs.
const IMAGES: usize = 100;
const ROUNDS: usize = 5;

/// A benchmark and its reference.
struct Comparison {
    benchmark: &'static str,
    /// The program that makes a dataset, the directory of its images, and the sizes that are common in the published one.
    dataset: (&'static str, &'static str, &'static str),
    /// The reference's libraries, program, and arguments behind the dataset's directory.
    reference: (&'static str, &'static str, &'static [&'static str]),
}

const IMAGENET: &str = "500x375,500x333,375x500,500x500,640x480";
const OPEN_IMAGES: &str = "1024x768,1024x683,768x1024";
const COCO: &str = "640x480,640x427,480x640,427x640,500x375";

const COMPARISONS: [Comparison; 5] = [
    Comparison {
        benchmark: "resnet50",
        dataset: ("make_images.py", ".", IMAGENET),
        reference: ("opencv", "reference.py", &[]),
    },
    Comparison {
        benchmark: "retinanet",
        dataset: ("make_openimages.py", "validation/data", OPEN_IMAGES),
        reference: ("opencv", "retinanet.py", &[]),
    },
    Comparison {
        benchmark: "yolo-99",
        dataset: ("make_coco.py", "val2017", COCO),
        reference: ("ultralytics", "letterbox.py", &[]),
    },
    Comparison {
        benchmark: "ssd-mobilenet",
        dataset: ("make_coco.py", "val2017", COCO),
        reference: ("opencv", "ssd.py", &["ssd-mobilenet"]),
    },
    Comparison {
        benchmark: "ssd-resnet34",
        dataset: ("make_coco.py", "val2017", COCO),
        reference: ("opencv", "ssd.py", &["ssd-resnet34"]),
    },
];

fn main() {
    let Some(opencv) = oracle::opencv() else { return };
    let chosen: Vec<String> = env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_known = |name: &String| COMPARISONS.iter().any(|one| one.benchmark == name);
    assert!(chosen.iter().all(is_known), "no such benchmark: {chosen:?}");
    for one in &COMPARISONS {
        if chosen.is_empty() || chosen.iter().any(|name| name == one.benchmark) {
            compare(one, &opencv);
        }
    }
}

fn compare(one: &Comparison, opencv: &Path) {
    let (library, script, arguments) = one.reference;
    let python = if library == "opencv" {
        opencv.to_owned()
    } else {
        // The oracle says what is missing.
        let Some(python) = oracle::ultralytics() else {
            return;
        };
        python
    };
    let place = tempfile::tempdir().unwrap();
    let dataset = place.path().join("dataset");
    let (maker, images, sizes) = one.dataset;
    call(opencv, "opencv", maker, &dataset, &[&IMAGES.to_string()], sizes);
    let paths = jpegs(&dataset.join(images));
    let arguments = [arguments, &["--time"]].concat();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let printed = call(&python, library, script, &dataset, &arguments, sizes);
        theirs.push(1e3 * printed.trim().parse::<f64>().unwrap() / paths.len() as f64);
        ours.push(1e3 * seconds(one.benchmark, &paths) / paths.len() as f64);
    }
    let mut ratios: Vec<f64> = ours
        .iter()
        .zip(&theirs)
        .map(|(ours, theirs)| theirs / ours)
        .collect();
    let (ours, theirs, ratio) = (median(&mut ours), median(&mut theirs), median(&mut ratios));
    println!(
        "{:13} ours {ours:6.3} ms, reference {theirs:6.3} ms per image: {ratio:.2} times as fast ({:.2} to {:.2} in {ROUNDS} rounds)",
        one.benchmark,
        ratios[0],
        ratios[ROUNDS - 1]
    );
}

fn call(
    python: &Path,
    library: &str,
    script: &str,
    dataset: &Path,
    arguments: &[&str],
    sizes: &str,
) -> String {
    let output = Command::new(python)
        .arg(oracle::directory(library).join(script))
        .arg(dataset)
        .args(arguments)
        .env("REGATTA_USUAL_SIZES", sizes)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn jpegs(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    let is_jpeg =
        |path: &PathBuf| [Some(OsStr::new("jpg")), Some(OsStr::new("JPEG"))].contains(&path.extension());
    paths.retain(is_jpeg);
    paths.sort();
    paths
}

/// Returns the processor time of one pass over the images.
fn seconds(benchmark: &str, paths: &[PathBuf]) -> f64 {
    let mut benchmarks = known::benchmarks().unwrap().into_iter();
    let benchmark = benchmarks.find(|one| one.name == benchmark).unwrap();
    let form = Form::new(Dtype::Float32, Layout::Linear);
    let maker = ImageSampleMaker::new(&benchmark, form, None).unwrap();
    black_box(maker.read_data(&paths[0]).unwrap());
    let began = processor_time();
    for path in paths {
        black_box(maker.read_data(path).unwrap());
    }
    processor_time() - began
}

fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
