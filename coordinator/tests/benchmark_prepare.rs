//! Tests of `regatta benchmark prepare` with an invented ImageNet in its published form: one command gets, makes and adds everything, a second one
//! does nothing, an interrupted one continues, and incomplete, wrong or oversized files are refused before anything is done.

#![expect(clippy::panic, clippy::unwrap_used, reason = "test code")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use regatta_fsutil::hash::sha256_hex;
use regatta_lab_store::Store;
use regatta_test_support::{
    file_server::FileServer, fixture::onnx, json_schema::command_findings, strace::Strace,
};
use regatta_types::{
    DeviceId,
    documents::{DeviceFacts, EngineKind, GpuFacts},
};
use regatta_wire::message::Hello;
use serde_json::Value;

/// A JPEG of 40 x 24 pixels.
const IMAGE: &[u8] = include_bytes!("../../crates/prep/tests/four_colours.jpg");
const MODEL: &[u8] = b"a network, which nothing here reads";

/// A lab whose resnet50 has a few images, and the archives of its data set.
struct Lab {
    directory: tempfile::TempDir,
    server: FileServer,
    names: Vec<String>,
}

impl Lab {
    fn new(images: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let names: Vec<String> = (1..=images)
            .map(|number| format!("ILSVRC2012_val_{number:08}.JPEG"))
            .collect();
        let published = directory.path().join("published");
        fs::create_dir_all(published.join("labels")).unwrap();
        fs::create_dir(published.join("images")).unwrap();
        let mut labels = String::new();
        for (number, name) in names.iter().enumerate() {
            fs::write(published.join("images").join(name), IMAGE).unwrap();
            labels.push_str(&format!("{name} {}\n", number % 1000));
        }
        fs::write(published.join("labels/val.txt"), labels).unwrap();
        fs::write(published.join("labels/train.txt"), "not needed").unwrap();
        tar(
            &published.join("ILSVRC2012_img_val.tar"),
            "-cf",
            &published.join("images"),
            &names,
        );
        let label_names = ["train.txt".to_owned(), "val.txt".to_owned()];
        let labels = published.join("caffe_ilsvrc12.tar.gz");
        tar(&labels, "-czf", &published.join("labels"), &label_names);
        let list = format!("{}\n{}\n", names[1], names[0]);
        let server = FileServer::start(BTreeMap::from([
            ("caffe_ilsvrc12.tar.gz", fs::read(labels).unwrap()),
            ("cal_image_list_option_1.txt", list.clone().into_bytes()),
            ("resnet50_v1.onnx", MODEL.to_vec()),
        ]));
        let lab = Self {
            directory,
            server,
            names,
        };
        assert!(lab.regatta(&["init"]).status.success());
        lab.write_benchmark(&lab.benchmark(&list));
        lab
    }

    /// Returns the shipped benchmark with the sample count, sizes and addresses of this data set.
    fn benchmark(&self, list: &str) -> String {
        let (images, server) = (self.names.len(), &self.server.address);
        let mut text = include_str!("../../configs/benchmarks/resnet50.toml").to_owned();
        for (before, after) in [
            ("total_samples = 50000", format!("total_samples = {images}")),
            (
                "performance_samples = 1024",
                format!("performance_samples = {images}"),
            ),
            (
                "source_bytes = 6706560319",
                format!("source_bytes = {}", images * IMAGE.len()),
            ),
            ("files = 50000", format!("files = {images}")),
            ("bytes = 6706560319", format!("bytes = {}", images * IMAGE.len())),
            ("http://dl.caffe.berkeleyvision.org", server.clone()),
            (
                "https://raw.githubusercontent.com/mlcommons/inference/v5.0/calibration/ImageNet",
                server.clone(),
            ),
            ("https://zenodo.org/record/4735647/files", server.clone()),
            (
                "7662247d1d9407d6cb564268f64c5a4a6cf9f1a34fd2e6cdc3b94dcf278b3dc9",
                sha256_hex(list.as_bytes()),
            ),
            (
                "\nsamples = 500\n",
                format!("\nsamples = {}\n", list.lines().count()),
            ),
            (
                "md5:f6a4da60cd5f084d97efc2c1ddb10beb",
                format!("sha256:{}", sha256_hex(MODEL)),
            ),
        ] {
            assert!(text.contains(before), "{before}");
            text = text.replace(before, &after);
        }
        text
    }

    fn write_benchmark(&self, text: &str) {
        let configs = self.path("lab/configs/benchmarks");
        fs::create_dir_all(&configs).unwrap();
        fs::write(configs.join("resnet50.toml"), text).unwrap();
    }

    fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    fn scratch(&self, below: &str) -> PathBuf {
        self.path("lab/scratch").join(below)
    }

    fn archive(&self) -> String {
        self.path("published/ILSVRC2012_img_val.tar")
            .to_str()
            .unwrap()
            .to_owned()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
        command
            .args(words)
            .env("REGATTA_WORKSPACE", self.path("lab"))
            .env_remove("MLPERF_SCRATCH_PATH")
            .stdin(Stdio::null());
        command
    }

    fn regatta(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn prepare(&self, words: &[&str]) -> Output {
        self.regatta(&[&["benchmark", "prepare"], words].concat())
    }

    /// Prepares resnet50 from the archive. Returns the exit code and the document.
    fn prepared(&self, words: &[&str]) -> (Option<i32>, Value) {
        let archive = self.archive();
        let common = ["resnet50", "--from", &archive, "--format", "json"];
        let output = self.prepare(&[&common, words].concat());
        let document = serde_json::from_slice(&output.stdout);
        (
            output.status.code(),
            document.unwrap_or_else(|error| panic!("{error}: {output:?}")),
        )
    }

    fn assets(&self) -> Vec<String> {
        let output = self.regatta(&["asset", "list", "--format", "json"]);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let assets = document["assets"].as_array().unwrap().iter();
        assets
            .map(|asset| asset["path"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Adds a Jetson Orin NX with TensorRT.
    fn add_device(&self, assets_max_bytes: Option<u64>) {
        let store = Store::open(&self.path("lab/regatta.db")).unwrap();
        let facts = DeviceFacts {
            model: "NVIDIA Jetson Orin NX".to_owned(),
            module: Some("p3767-0000".to_owned()),
            dla_cores: 2,
            memory_bytes: 16 << 30,
            gpus: vec![GpuFacts {
                name: "Orin".to_owned(),
                compute_capability: "8.7".to_owned(),
                multiprocessors: 8,
                memory_bytes: 16 << 30,
                integrated: true,
            }],
            assets_max_bytes,
            ..DeviceFacts::default()
        };
        let public_key = [7; 32];
        let hello = Hello {
            device: DeviceId::of_public_key(&public_key),
            name: "boat-1".to_owned(),
            public_key,
            online: true,
            agent: "0.1.0".to_owned(),
            engines: vec![EngineKind::Null, EngineKind::Tract, EngineKind::Tensorrt],
            facts_json: serde_json::to_vec(&facts).unwrap(),
            runs: Vec::new(),
        };
        store.devices().record_hello(&hello).unwrap();
    }
}

fn tar(archive: &Path, how: &str, directory: &Path, names: &[String]) {
    let made = Command::new("tar")
        .arg(how)
        .arg(archive)
        .arg("-C")
        .arg(directory)
        .args(names)
        .status();
    assert!(made.unwrap().success());
}

/// Returns the steps of the first benchmark in a document, each with its state.
fn steps(document: &Value) -> Vec<String> {
    let steps = document["benchmarks"][0]["steps"].as_array().unwrap().iter();
    let text = |step: &Value, key: &str| step[key].as_str().unwrap().to_owned();
    steps
        .map(|step| format!("{} {}", text(step, "step"), text(step, "state")))
        .collect()
}

fn errors(output: &Output) -> (Option<i32>, String) {
    (
        output.status.code(),
        String::from_utf8(output.stderr.clone()).unwrap(),
    )
}

#[test]
fn one_command_prepares_imagenet_and_a_second_one_does_nothing() {
    let lab = Lab::new(6);
    let (code, dry) = lab.prepared(&["--dry-run"]);
    let expected = ["fetch", "fetch", "unpack", "unpack", "prepare", "add assets"];
    assert_eq!(code, Some(0));
    assert_eq!(command_findings(&dry, "preparation"), [] as [&str; 0]);
    assert_eq!(steps(&dry), expected.map(|step| format!("{step} planned")));
    assert_eq!(lab.server.requests(), 0);
    assert!(!lab.scratch("data").exists() && !lab.scratch("downloads").exists());

    let (code, document) = lab.prepared(&[]);
    assert_eq!((code, &document["complete"]), (Some(0), &true.into()));
    assert_eq!(steps(&document), expected.map(|step| format!("{step} done")));
    let samples = lab.scratch("preprocessed_data/imagenet/ResNet50/fp32");
    assert!(samples.join(format!("{}.npy", lab.names[5])).is_file());
    assert_eq!(
        fs::read(lab.scratch("models/ResNet50/resnet50_v1.onnx")).unwrap(),
        MODEL
    );
    assert!(!lab.scratch("data/resnet50/train.txt").exists());
    let assets = [
        "models/ResNet50/resnet50_v1.onnx",
        "preprocessed_data/imagenet/ResNet50/fp32",
        "preprocessed_data/imagenet/val_map.txt",
    ];
    assert_eq!(lab.assets(), assets);

    let requests = lab.server.requests();
    fs::remove_file(lab.archive()).unwrap();
    let begun = Instant::now();
    let again = lab.prepare(&["resnet50"]);
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    assert_eq!(
        String::from_utf8(again.stdout).unwrap(),
        "nothing to do: resnet50 is prepared\n"
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(lab.server.requests(), requests);
    // A lost file is fetched or made again, without the other files.
    let model = lab.scratch("models/ResNet50/resnet50_v1.onnx");
    fs::remove_file(&model).unwrap();
    let lost = lab.prepare(&["resnet50", "--format", "json"]);
    let lost: Value = serde_json::from_slice(&lost.stdout).unwrap();
    assert_eq!(steps(&lost), ["fetch done", "add assets done"]);
    // A file that was changed within the second in which it was added is added again.
    let listed = lab.regatta(&["asset", "list", "--format", "json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let added: Timestamp = listed["assets"][0]["added"].as_str().unwrap().parse().unwrap();
    let changed = added + Duration::from_nanos(1);
    fs::write(&model, vec![0; MODEL.len()]).unwrap();
    let file = fs::File::options().append(true).open(&model).unwrap();
    file.set_modified(changed.into()).unwrap();
    let changed = lab.prepare(&["resnet50", "--format", "json"]);
    let changed: Value = serde_json::from_slice(&changed.stdout).unwrap();
    assert_eq!(steps(&changed), ["add assets done"]);
}

#[test]
fn unpacked_images_are_flushed_to_disk_together() {
    let Some(strace) = Strace::find() else { return };
    let lab = Lab::new(3);
    let archive = lab.archive();
    let prepare = lab.command(&["benchmark", "prepare", "resnet50", "--from", &archive]);
    let mut traced = strace.listing(prepare.get_program().to_str().unwrap(), &[], "syncfs");
    traced.args(prepare.get_args()).stdin(Stdio::null());
    for (name, value) in prepare.get_envs() {
        match value {
            Some(value) => traced.env(name, value),
            None => traced.env_remove(name),
        };
    }
    let output = traced.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let flushed = |directory: &str| {
        let seen = strace.seen();
        seen.lines().filter(|line| line.contains(directory)).count()
    };
    assert_eq!(
        flushed("data/resnet50>"),
        2,
        "labels and images: {}",
        strace.seen()
    );
    assert_eq!(flushed("ResNet50/fp32>"), 1, "{}", strace.seen());
}

#[test]
fn the_disk_needs_no_space_for_files_of_an_interrupted_preparation() {
    let lab = Lab::new(4);
    let images = lab.scratch("data/resnet50");
    fs::create_dir_all(&images).unwrap();
    for name in &lab.names[..3] {
        fs::write(images.join(name), IMAGE).unwrap();
    }
    // It was cut off, and is unpacked again.
    fs::write(images.join(&lab.names[0]), "half").unwrap();
    // Temporary files never count.
    for name in [".unpacking", ".a", ".b"] {
        fs::write(images.join(name), "half").unwrap();
    }
    let samples = lab.scratch("preprocessed_data/imagenet/ResNet50/fp32");
    fs::create_dir_all(&samples).unwrap();
    fs::write(samples.join("one.npy"), [0; 1_000]).unwrap();
    let (_, dry) = lab.prepared(&["--dry-run"]);
    let bytes = |step: &str, of: &str| {
        let steps = dry["benchmarks"][0]["steps"].as_array().unwrap().iter();
        let mut found = steps.filter(|found| found["step"] == step && found["target"] == of);
        found.next().unwrap_or_else(|| panic!("{dry:#}"))["bytes"].as_u64()
    };
    assert_eq!(bytes("unpack", "data/resnet50/"), Some(2 * IMAGE.len() as u64));
    let sample = 3 * 224 * 224 * 4 + 128;
    let target = "preprocessed_data/imagenet/ResNet50/fp32";
    assert_eq!(bytes("prepare", target), Some(4 * sample - 1_000));
    // The device needs space for all samples, whatever is here.
    lab.add_device(Some(3 * (3 * 224 * 224 + 128)));
    let (code, refused) = errors(&lab.prepare(&["resnet50", "--from", &lab.archive(), "--for", "boat-1"]));
    assert_eq!(code, Some(3), "{refused}");
}

#[test]
fn samples_are_made_in_the_types_of_a_devices_system() {
    let lab = Lab::new(3);
    lab.add_device(Some(1 << 30));
    let (code, document) = lab.prepared(&["--for", "boat-1"]);
    assert_eq!(code, Some(0), "{document}");
    let made = steps(&document);
    assert!(made.contains(&"calibration samples done".to_owned()), "{made:?}");
    let imagenet = "preprocessed_data/imagenet/ResNet50";
    let [linear, chw4, calibration] = ["int8_linear", "int8_chw4", "cal_image_list_option_1_fp32_linear"]
        .map(|form| format!("{imagenet}/{form}"));
    let assets = lab.assets();
    for path in [&linear, &chw4, &calibration] {
        assert!(lab.scratch(path).join("samples.json").is_file(), "{path}");
        assert!(assets.contains(path), "{assets:?}");
    }
    assert!(!lab.scratch(&format!("{imagenet}/fp32")).exists());
    // Runs use the prepared files.
    for (scenario, directory) in [("SingleStream", &linear), ("Offline", &chw4)] {
        let run = lab.regatta(&[
            "run",
            "--device",
            "boat-1",
            "--benchmark",
            "resnet50",
            "--scenario",
            scenario,
            "--engine",
            "tensorrt",
            "--dry-run",
            "--format",
            "json",
        ]);
        assert!(run.status.success(), "{run:?}");
        let specs: Value = serde_json::from_slice(&run.stdout).unwrap();
        assert_eq!(
            specs["specs"][0]["benchmark"]["dataset"]["dir"],
            directory.as_str()
        );
        assert_eq!(
            specs["specs"][0]["engine"]["settings"]["calibration"],
            calibration.as_str()
        );
    }
    let (code, document) = lab.prepared(&["--for", "boat-1"]);
    assert_eq!((code, steps(&document)), (Some(0), Vec::new()));
    // Samples of another scale, and those of a shorter list, are made again.
    let expected = ["prepare done", "add assets done"];
    let published = |set: &str| lab.scratch(set).join("samples.json");
    let complete = fs::read_to_string(published(&chw4)).unwrap();
    let mut other: Value = serde_json::from_str(&complete).unwrap();
    other["quantised"]["scale"] = 0.5.into();
    fs::write(published(&chw4), other.to_string()).unwrap();
    assert_eq!(steps(&lab.prepared(&["--for", "boat-1"]).1), expected);
    assert_eq!(fs::read_to_string(published(&chw4)).unwrap(), complete);
    let list = lab.scratch("data/resnet50/cal_image_list_option_1.txt");
    let names = fs::read_to_string(&list).unwrap();
    fs::write(&list, names.lines().next().unwrap()).unwrap();
    let expected = ["calibration samples done", "add assets done"];
    assert_eq!(steps(&lab.prepared(&["--for", "boat-1"]).1), expected);
    let samples =
        || -> Value { serde_json::from_slice(&fs::read(published(&calibration)).unwrap()).unwrap() };
    assert_eq!(samples()["samples"], 1);
    fs::write(&list, names).unwrap();
    assert_eq!(steps(&lab.prepared(&["--for", "boat-1"]).1), expected);
    assert_eq!(samples()["samples"], 2);
    let (code, unknown) = errors(&lab.prepare(&["resnet50", "--for", "canoe"]));
    assert_eq!(code, Some(2));
    assert!(
        unknown.contains("unknown device `canoe`; known are boat-1"),
        "{unknown}"
    );
}

#[test]
fn what_does_not_fit_on_a_device_or_a_disk_is_refused_before_anything_is_done() {
    let lab = Lab::new(3);
    lab.add_device(Some(100_000));
    let archive = lab.archive();
    let (code, device) = errors(&lab.prepare(&["resnet50", "--from", &archive, "--for", "boat-1"]));
    assert_eq!(code, Some(3), "{device}");
    assert!(
        device.contains("boat-1 is too small for a run of resnet50 with samples as int8_linear")
            && device.contains("assets_max_mib = 2 "),
        "{device}"
    );
    // For a directory, the number of samples is the one in the benchmark's file.
    let text = fs::read_to_string(lab.path("lab/configs/benchmarks/resnet50.toml")).unwrap();
    lab.write_benchmark(&text.replace("total_samples = 3", "total_samples = 5000000000"));
    let images = lab.path("published/images");
    let (code, disk) = errors(&lab.prepare(&["resnet50", "--from", images.to_str().unwrap()]));
    assert_eq!(code, Some(3), "{disk}");
    assert!(disk.contains(" is too small: the steps add "), "{disk}");
    assert!(!lab.scratch("data").exists() && !lab.scratch("models").exists());
}

/// The list is fetched by the preparation itself, so its length comes from the benchmark's file.
#[test]
fn calibration_samples_count_on_both_sides_before_their_list_is_there() {
    let lab = Lab::new(3);
    lab.add_device(Some(1 << 30));
    let (_, dry) = lab.prepared(&["--for", "boat-1", "--dry-run"]);
    let bytes = |step: &str| {
        let steps = dry["benchmarks"][0]["steps"].as_array().unwrap().iter();
        let of_step = steps.filter(|found| found["step"] == step);
        of_step.map(|found| found["bytes"].as_u64().unwrap()).sum::<u64>()
    };
    let calibration = 2 * (3 * 224 * 224 * 4 + 128);
    assert_eq!(bytes("calibration samples"), calibration, "{dry:#}");
    // The size of the network is not published.
    assert_eq!(bytes("add assets"), bytes("prepare") + calibration, "{dry:#}");

    // The device has space for the largest samples and the model, and not for the calibration samples.
    lab.add_device(Some(calibration));
    let (code, refused) = errors(&lab.prepare(&["resnet50", "--from", &lab.archive(), "--for", "boat-1"]));
    assert_eq!(code, Some(3), "{refused}");
    assert!(
        refused.contains("they, the calibration samples and the model have "),
        "{refused}"
    );
}

#[test]
fn an_incomplete_or_wrong_archive_is_refused_before_anything_is_done() {
    let lab = Lab::new(4);
    let complete = fs::read(lab.archive()).unwrap();
    let refusal = |bytes: &[u8]| {
        fs::write(lab.archive(), bytes).unwrap();
        let (code, errors) = errors(&lab.prepare(&["resnet50", "--from", &lab.archive()]));
        assert_eq!(code, Some(2), "{errors}");
        errors
    };
    // The end of the tar is padding, so only a quarter is kept.
    let half = refusal(&complete[..complete.len() / 4]);
    assert!(
        half.contains("ILSVRC2012_img_val.tar is incomplete: the archive ends early"),
        "{half}"
    );
    let images = lab.path("published/images");
    let other = lab.path("other.tar");
    tar(&other, "-cf", &images, &lab.names[..3]);
    let fewer = refusal(&fs::read(&other).unwrap());
    assert!(
        fewer.contains("is not the published archive: it has 3 files, the published one has 4"),
        "{fewer}"
    );
    tar(&other, "-cf", &lab.path("published"), &["images".to_owned()]);
    let inside = refusal(&fs::read(&other).unwrap());
    assert!(
        inside.contains("is in a directory, the images are not"),
        "{inside}"
    );
    fs::write(images.join(&lab.names[0]), "another photograph").unwrap();
    tar(&other, "-cf", &images, &lab.names);
    let changed = refusal(&fs::read(&other).unwrap());
    assert!(changed.contains("its files have "), "{changed}");
    let photograph = refusal(IMAGE);
    assert!(
        photograph.contains("is not a file of these benchmarks"),
        "{photograph}"
    );
    let (code, unknown) = errors(&lab.prepare(&["bert-99", "--from", &lab.archive()]));
    assert_eq!(code, Some(2), "{unknown}");
    assert!(!lab.scratch("data").exists() && !lab.scratch("models").exists());
}

#[test]
fn what_needs_a_registration_is_named_while_the_rest_is_got() {
    let lab = Lab::new(2);
    let output = lab.prepare(&["resnet50"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.contains("resnet50: missing: ILSVRC2012 validation images")
            && printed.contains("registration with ImageNet")
            && printed.contains("then the same command with --from ARCHIVE"),
        "{printed}"
    );
    assert!(lab.scratch("data/resnet50/val.txt").is_file());
    assert!(lab.scratch("models/ResNet50/resnet50_v1.onnx").is_file());
    assert_eq!(lab.assets(), [] as [&str; 0]);
    // The images are in another directory, without labels.
    let images = lab.path("published/images");
    let output = lab.prepare(&["resnet50", "--from", images.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(lab.assets().len(), 3);
}

#[test]
fn a_file_that_its_server_no_longer_has_is_named() {
    let lab = Lab::new(2);
    let text = fs::read_to_string(lab.path("lab/configs/benchmarks/resnet50.toml")).unwrap();
    lab.write_benchmark(&text.replace("/caffe_ilsvrc12.tar.gz", "/gone/caffe_ilsvrc12.tar.gz"));
    let archive = lab.archive();
    let words = ["resnet50", "--from", &archive];
    let (code, gone) = errors(&lab.prepare(&words));
    assert_eq!(code, Some(3), "{gone}");
    assert!(
        gone.contains("repeat this command with --from caffe_ilsvrc12.tar.gz"),
        "{gone}"
    );
    let labels = lab.path("published/caffe_ilsvrc12.tar.gz");
    let named = lab.prepare(&[&words[..], &["--from", labels.to_str().unwrap()]].concat());
    assert_eq!(named.status.code(), Some(0), "{named:?}");
}

/// Kills the command once after unpacking files, and once after making samples.
#[test]
fn a_killed_preparation_continues() {
    let lab = Lab::new(150);
    let archive = lab.archive();
    let samples = "preprocessed_data/imagenet/ResNet50/fp32";
    for (directory, files) in [("data/resnet50", 20), (samples, 20)] {
        let mut running = lab
            .command(&["benchmark", "prepare", "resnet50", "--from", &archive])
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        let count = || fs::read_dir(lab.scratch(directory)).map_or(0, Iterator::count);
        while count() < files && begun.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(1));
        }
        running.kill().unwrap();
        running.wait().unwrap();
        assert!(count() >= files);
    }
    assert!(
        !lab.scratch(samples).join("samples.json").exists(),
        "it was killed too late"
    );
    assert_eq!(lab.assets(), [] as [&str; 0]);
    let (code, document) = lab.prepared(&[]);
    assert_eq!(code, Some(0), "{document}");
    assert_eq!(steps(&document), ["prepare done", "add assets done"]);
    let expected = Lab::new(150);
    assert_eq!(expected.prepared(&[]).0, Some(0));
    let manifest = |lab: &Lab| fs::read(lab.scratch(samples).join("samples.json")).unwrap();
    assert_eq!(manifest(&lab), manifest(&expected));
}

#[test]
fn two_preparations_do_not_work_at_once() {
    let lab = Lab::new(2);
    fs::create_dir_all(lab.scratch("")).unwrap();
    let lock = fs::File::create(lab.scratch(".prepare.lock")).unwrap();
    lock.lock().unwrap();
    let (code, busy) = errors(&lab.prepare(&["digits"]));
    assert_eq!(code, Some(3), "{busy}");
    assert!(
        busy.contains("another `regatta benchmark prepare` is running in"),
        "{busy}"
    );
}

/// `prep` cannot read the calibration list of bert-99, whose published network has no scales.
#[test]
fn missing_scales_of_int8_engines_are_named() {
    let lab = Lab::new(2);
    lab.add_device(None);
    let missing = |words: &[&str]| {
        let common = ["bert-99", "--dry-run", "--format", "json"];
        let output = lab.prepare(&[&common, words].concat());
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(command_findings(&document, "preparation"), [] as [&str; 0]);
        let missing = document["benchmarks"][0]["missing"].clone();
        (output.status.code(), missing)
    };
    let none = Value::Array(Vec::new());
    assert_eq!(missing(&[]), (Some(0), none.clone()), "it may run without int8");
    let (code, named) = missing(&["--for", "boat-1"]);
    assert_eq!(code, Some(1));
    let what = named[0]["what"].as_str().unwrap();
    assert!(
        what.contains("scales for int8 engines of bert-99") && what.contains("bert_calibration_features.txt"),
        "{named:#}"
    );
    let hint = named[0]["hint"].as_str().unwrap();
    assert!(
        hint.contains("models/bert/model.onnx") && hint.contains("--set calibration=PATH"),
        "{named:#}"
    );
    // A network with scales, and samples from elsewhere.
    let network = lab.scratch("models/bert/model.onnx");
    fs::create_dir_all(network.parent().unwrap()).unwrap();
    fs::write(&network, onnx::quantised()).unwrap();
    assert_eq!(missing(&["--for", "boat-1"]).1, none);
    fs::remove_file(&network).unwrap();
    fs::create_dir_all(lab.scratch("preprocessed_data/squad/bert_calibration_features_int32_linear"))
        .unwrap();
    assert_eq!(missing(&["--for", "boat-1"]).1, none);
}

#[test]
fn the_bundled_benchmark_needs_nothing() {
    let lab = Lab::new(2);
    let first = lab.prepare(&["digits", "--format", "json"]);
    let first: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(steps(&first), ["prepare done", "add assets done"]);
    assert_eq!(lab.assets().len(), 3);
    let second = lab.prepare(&["digits"]);
    let printed = String::from_utf8(second.stdout).unwrap();
    assert_eq!(printed, "nothing to do: digits is prepared\n");
}

/// The Python of this test does not have the packages.
#[test]
fn networks_are_not_exported_without_the_packages_of_the_tool() {
    let lab = Lab::new(2);
    let weights = lab.scratch("models/rnnt/rnnt.pt");
    fs::create_dir_all(weights.parent().unwrap()).unwrap();
    fs::write(weights, "weights").unwrap();
    let (code, missing) = errors(&lab.prepare(&["rnnt", "--python", "/bin/false", "--from", "/tmp"]));
    assert_eq!(code, Some(2), "{missing}");
    assert!(
        missing.contains("/bin/false does not have numpy, onnx")
            && missing.contains("-m pip install numpy=="),
        "{missing}"
    );
}
