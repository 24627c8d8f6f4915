//! Networks that the tools of this repository export from small random weights in each published form, beside the models that the weights belong to:
//! numbers of the heads by ONNX Runtime, and detections by tract. Outputs of the models were recorded, because PyTorch is large. With
//! `REGATTA_TORCH` set to a Python that has PyTorch and torchvision, they are computed again, and PyTorch itself writes the weights.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use regatta_test_requirements::official_tools;
use regatta_test_support::oracle;
use regatta_types::benchmark::{Benchmark, Detections};
use serde_json::Value;

use super::near_detections::{DetectionFiles, assert_near};

/// The largest difference of a head's number, absolute up to 1 and relative above it.
const BOUND: f64 = 1e-4;

/// An exported model.
struct Case {
    benchmark: &'static str,
    /// The directory of the recording, `NAME.json`, and its text.
    recorded: &'static str,
    tool: &'static str,
    /// The forms in which `small.py` writes the weights.
    forms: &'static [&'static str],
    most: usize,
    /// The form in which `small.py` writes the network's samples. The model itself always gets `samples`.
    samples: &'static str,
    /// Whether the model is that of the reference, and not torchvision's.
    is_of_reference: bool,
}

/// Recorded outputs of a model, as `record.py` describes them.
struct Record {
    heads: BTreeMap<String, Vec<f64>>,
    detections: Vec<Vec<[f64; 7]>>,
}

impl Record {
    fn parse(text: &str) -> Self {
        let mut document: Value = serde_json::from_str(text).unwrap();
        Self {
            heads: serde_json::from_value(document["heads"].take()).unwrap(),
            detections: serde_json::from_value(document["detections"].take()).unwrap(),
        }
    }
}

fn run(python: &Path, script: &str, words: &[&dyn AsRef<OsStr>]) -> String {
    let words: Vec<&OsStr> = words.iter().map(AsRef::as_ref).collect();
    oracle::run(python, "torch", script, &words)
}

fn assert_heads(ours: &BTreeMap<String, Vec<f64>>, theirs: &BTreeMap<String, Vec<f64>>) {
    let mut largest = 0.0_f64;
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    for (ours, theirs) in ours.values().zip(theirs.values()) {
        assert_eq!((ours.len(), theirs.len()), (200, 200));
        for (one, other) in ours.iter().zip(theirs) {
            largest = largest.max((one - other).abs() / other.abs().max(1.0));
        }
        let spread = theirs.iter().map(|value| value.abs()).fold(0.0, f64::max);
        assert!(spread > 0.3, "heads of {spread} would show little");
    }
    println!("numbers of the heads differ by {largest:.1e} at most");
    assert!(largest <= BOUND, "{largest}");
}

/// Exports weights. Returns the file of the network.
fn export(case: &Case, benchmark: &Benchmark, python: &Path, weights: &Path) -> PathBuf {
    let directory = weights.with_extension("networks");
    run(python, case.tool, &[&weights, &directory]);
    directory.join(Path::new(&benchmark.model.file).file_name().unwrap())
}

/// Exports weights of each form, of which the network is the same. Returns its file.
fn export_forms(case: &Case, benchmark: &Benchmark, python: &Path, place: &Path) -> PathBuf {
    let networks = case.forms.iter().map(|form| {
        let weights = place
            .join(form)
            .with_extension(if *form == "npz" { "npz" } else { "pth" });
        run(python, "small.py", &[&benchmark.name, form, &weights]);
        export(case, benchmark, python, &weights)
    });
    let networks: Vec<PathBuf> = networks.collect();
    for (other, form) in networks.iter().zip(case.forms) {
        assert!(
            fs::read(other).unwrap() == fs::read(&networks[0]).unwrap(),
            "{form}"
        );
    }
    networks[0].clone()
}

/// Computes the outputs of the model itself. Returns them, and the weights that PyTorch writes.
fn record_again(case: &Case, benchmark: &Benchmark, torch: &Path, place: &Path) -> Option<(Record, PathBuf)> {
    let checkout = match case.is_of_reference {
        true => official_tools("v2.0/vision")?.parent()?.to_owned(),
        false => PathBuf::new(),
    };
    let [weights, samples, saved] = ["npz.npz", "samples.f32", "saved.pth"].map(|name| place.join(name));
    let mut words: Vec<&dyn AsRef<OsStr>> = vec![&benchmark.name, &weights, &samples, &saved];
    let script = if case.is_of_reference {
        words.push(&checkout);
        "ssd.py"
    } else {
        "retinanet.py"
    };
    Some((Record::parse(&run(torch, script, &words)), saved))
}

fn compare(case: &Case, change: impl FnOnce(&mut Benchmark)) {
    let (Some(onnx), Some(runtime)) = (oracle::onnx(), oracle::onnxruntime()) else {
        return;
    };
    let mut benchmark = Benchmark::from_toml(case.benchmark).unwrap();
    change(&mut benchmark);
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let samples = place.join("samples.f32");
    run(&onnx, "small.py", &[&benchmark.name, &"samples", &samples]);
    let prepared = place.join("prepared.f32");
    run(&onnx, "small.py", &[&benchmark.name, &case.samples, &prepared]);
    let network = export_forms(case, &benchmark, &onnx, place);
    let theirs = Record::parse(case.recorded);
    let side = benchmark.model.input_shape[1].to_string();
    let heads = run(&runtime, "heads.py", &[&network, &side, &prepared]);
    assert_heads(&serde_json::from_str(&heads).unwrap(), &theirs.heads);

    let values = fs::read(&prepared).unwrap();
    let sample = |index| {
        values
            .chunks_exact(values.len() / theirs.detections.len())
            .nth(index)
            .unwrap()
            .to_vec()
    };
    let files = DetectionFiles::new(
        &benchmark,
        fs::read(&network).unwrap(),
        theirs.detections.len(),
        sample,
    );
    let ours = files.answers(&benchmark, Arc::default());
    assert_near(&ours, &theirs.detections, case.most, |class| class);
    let torch = env::var_os("REGATTA_TORCH").map(PathBuf::from);
    if let Some((again, saved)) = torch.and_then(|torch| record_again(case, &benchmark, &torch, place)) {
        assert_heads(&again.heads, &theirs.heads);
        assert_near(&ours, &again.detections, case.most, |class| class);
        let exported = fs::read(export(case, &benchmark, &onnx, &saved)).unwrap();
        assert!(
            exported == fs::read(&network).unwrap(),
            "another network of PyTorch's own file"
        );
    }
}

#[test]
fn exported_retinanet_finds_what_torchvision_finds() {
    let case = Case {
        benchmark: include_str!("../../../../configs/benchmarks/retinanet.toml"),
        recorded: include_str!("../../../../tests/oracles/torch/retinanet.json"),
        tool: "../../../tools/export-retinanet",
        forms: &["npz", "archive", "pickles", "module"],
        most: 300,
        // torchvision's model normalises its input, and the network takes what `regatta prep` has normalised.
        samples: "normalised",
        is_of_reference: false,
    };
    compare(&case, |benchmark| {
        let Some(Detections::Heads(heads)) = &mut benchmark.model.detections else {
            unreachable!("the file has heads");
        };
        heads.classes = 12;
    });
}

#[test]
fn exported_ssd_resnet34_finds_what_the_reference_finds() {
    let case = Case {
        benchmark: include_str!("../../../../configs/benchmarks/ssd-resnet34.toml"),
        recorded: include_str!("../../../../tests/oracles/torch/ssd-resnet34.json"),
        tool: "../../../tools/export-ssd",
        forms: &["npz", "module"],
        most: 200,
        samples: "samples",
        is_of_reference: true,
    };
    compare(&case, |_| {});
}

#[test]
fn exported_ssd_mobilenet_finds_what_the_reference_finds() {
    let case = Case {
        benchmark: include_str!("../../../../configs/benchmarks/ssd-mobilenet.toml"),
        recorded: include_str!("../../../../tests/oracles/torch/ssd-mobilenet.json"),
        tool: "../../../tools/export-ssd",
        forms: &["npz", "archive", "module"],
        most: 100,
        samples: "samples",
        is_of_reference: true,
    };
    compare(&case, |_| {});
}
