//! Preprocessing of JPEG images beside the reference's libraries, on one processor, in turns: `cargo bench -p regatta-prep --bench
//! preprocessing`. Both read the files, and leave the bytes of a `.npy` in memory. Processor time, not elapsed time, is compared.

#![expect(clippy::unwrap_used, reason = "a bench ends where it cannot measure")]

use std::{fs, hint::black_box, path::Path, process::Command};

use regatta_config::known;
use regatta_prep::SampleMaker;
use regatta_test_support::oracle;
use regatta_types::benchmark::Prep;
use rustix::time::{ClockId, clock_gettime};

/// Images of ImageNet's usual sizes, photographs and noise.
const IMAGES: usize = 300;
const ROUNDS: usize = 5;

fn main() {
    let Some(python) = oracle::opencv() else { return };
    let place = tempfile::tempdir().unwrap();
    let images = place.path().join("images");
    let scripts = oracle::directory("opencv");
    let call = |script: &str, argument: &str| {
        let output = Command::new(&python)
            .arg(scripts.join(script))
            .arg(&images)
            .arg(argument)
            .env("REGATTA_USUAL_SIZES", "1")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    call("make_images.py", &IMAGES.to_string());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        theirs.push(call("reference.py", "--time").trim().parse::<f64>().unwrap() / IMAGES as f64);
        ours.push(seconds(&images) / IMAGES as f64);
        println!(
            "round {round}: ours {:.3} ms, reference {:.3} ms per image",
            1e3 * ours[round - 1],
            1e3 * theirs[round - 1]
        );
    }
    let (ours, theirs) = (median(&mut ours), median(&mut theirs));
    println!(
        "median of {ROUNDS}: ours {:.3} ms, reference {:.3} ms per image: {:.2} times as fast",
        1e3 * ours,
        1e3 * theirs,
        theirs / ours
    );
}

/// Returns the processor time of one pass over the images.
fn seconds(images: &Path) -> f64 {
    let benchmark = known::benchmarks()
        .unwrap()
        .into_iter()
        .find(|one| one.name == "resnet50")
        .unwrap();
    let Some(Prep::JpegImages(kind)) = &benchmark.prep else {
        return f64::NAN;
    };
    let maker = SampleMaker::new(&benchmark, kind, benchmark.form(), None).unwrap();
    let mut paths: Vec<_> = fs::read_dir(images)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "JPEG"));
    assert_eq!(paths.len(), IMAGES);
    black_box(maker.make(&fs::read(&paths[0]).unwrap()).unwrap());
    let began = processor_time();
    for path in &paths {
        black_box(maker.make(&fs::read(path).unwrap()).unwrap());
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
