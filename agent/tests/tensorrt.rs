//! `bench --sut tensorrt` through the binary, over twins of CUDA's driver and of TensorRT: whole runs with the right answers, and
//! every fault that a board can have, each told by its own words.

mod support;

use std::{env, fs, io::BufReader, path::PathBuf};

use regatta_rules::response_units::ResponseUnits;
use support::{
    fixture,
    place::{Place, expected},
};

#[test]
fn every_scenario_gives_the_right_answers_and_a_result() {
    let place = Place::new();
    place.build(&["--batch", "8", "--profiles", "2"], &[]);
    place.build(&["--batch", "2", "--dla-core", "0"], &[]);
    let copies = [
        "use_direct_host_access=false",
        "use_graphs=false",
        "use_spin_wait=true",
    ];
    let dla = [
        "max_dlas=2",
        "dla_loop_count=3",
        "gpu_batch_size=8",
        "gpu_copy_streams=2",
    ];
    let shared = ["gpu_copy_streams=2", "gpu_inference_streams=1"];
    let graphs = ["use_graphs=true", "use_direct_host_access=true"];
    for (scenario, settings) in [
        ("SingleStream", &[][..]),
        ("SingleStream", &copies),
        ("SingleStream", &["dla_core=1"]),
        ("MultiStream", &[]),
        ("MultiStream", &["max_dlas=1"]),
        ("Offline", &graphs),
        ("Offline", &copies),
        ("Offline", &shared),
        ("Offline", &dla),
        ("Server", &["batch_size=4"]),
    ] {
        let ended = place.bench(scenario, "AccuracyOnly", settings, &[]);
        assert_eq!(ended.code, 0, "{scenario} {settings:?}: {ended:?}");
        assert_eq!(place.answers(), expected(), "{scenario} {settings:?}");
    }
    for scenario in ["SingleStream", "MultiStream", "Offline", "Server"] {
        let ended = place.bench(scenario, "PerformanceOnly", &[], &[]);
        let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(report["metric"]["value"].as_f64().unwrap() > 0.0, "{report:#}");
        let engine = report["engine"].as_str().unwrap();
        assert!(
            engine.starts_with("tensorrt 8.5.2 on twin of a GPU (CUDA 11.4, in host memory; gpu: engine "),
            "{engine}"
        );
    }
}

/// Two GPUs with memory of their own: every scenario, each with a share of the work where queries overlap.
#[test]
fn several_gpus_share_the_work() {
    let place = Place::new();
    let two = [("TWIN_CUDA_FAULTS", "discrete,devices=2")];
    place.build(&["--batch", "8", "--profiles", "2"], &two);
    let streams = ["gpu_copy_streams=2", "gpu_inference_streams=1"];
    for (scenario, settings) in [
        ("SingleStream", &[][..]),
        ("MultiStream", &[]),
        ("Offline", &streams),
        ("Offline", &["use_direct_host_access=true", "use_graphs=true"]),
        ("Offline", &["sharing=first-free"]),
        (
            "Server",
            &["batch_size=4", "deque_timeout_usec=500", "use_graphs=true"],
        ),
    ] {
        let ended = place.bench(scenario, "AccuracyOnly", settings, &two);
        assert_eq!(ended.code, 0, "{scenario} {settings:?}: {ended:?}");
        assert_eq!(place.answers(), expected(), "{scenario} {settings:?}");
    }
    let report = |scenario: &str, settings: &[&str], faults: &str| {
        let ended = place.bench(
            scenario,
            "PerformanceOnly",
            settings,
            &[("TWIN_CUDA_FAULTS", faults)],
        );
        let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        report["engine"].as_str().unwrap().to_owned()
    };
    fs::write(
        place.fixture.path("user.conf"),
        "*.Offline.target_qps = 2000\n*.Server.target_qps = 2000\n",
    )
    .unwrap();
    // Whoever is free: what is learnt of twins on a busy machine may well leave one out. Kernels of 10 ms leave either GPU work
    // for half a second, so that both get some where threads wait long for a processor.
    for scenario in ["Offline", "Server"] {
        let settings = ["gpu_batch_size=4", "sharing=first-free"];
        let engine = report(scenario, &settings, "discrete,devices=2,slow=10000");
        assert!(
            engine.contains("on 2 x twin of a GPU (CUDA 11.4, by copies; gpu0: engine ")
                && engine.contains("; gpu1: engine "),
            "{engine}"
        );
        let file = fs::File::open(place.fixture.path("logs/response_units.bin")).unwrap();
        let units = ResponseUnits::read(&mut BufReader::new(file)).unwrap();
        let counts: Vec<_> = units.counts().collect();
        assert!(
            matches!(counts[..], [("gpu0", 1..), ("gpu1", 1..)]),
            "{scenario}: {counts:?}"
        );
    }
    let engine = report("Offline", &["gpus=1"], "discrete,devices=2");
    assert!(
        engine.contains("on twin of a GPU (") && engine.contains("; gpu: engine "),
        "{engine}"
    );
    // One of another kind is left out, and refused by name.
    let unlike = "discrete,devices=2,unlike";
    assert!(report("Offline", &[], unlike).contains("on twin of a GPU ("));
    let refused = |settings: &[&str], faults: &str| {
        let ended = place.bench(
            "Offline",
            "AccuracyOnly",
            settings,
            &[("TWIN_CUDA_FAULTS", faults)],
        );
        assert_eq!(ended.code, 3, "{ended:?}");
        ended.stderr
    };
    let told = refused(&["gpus=0,1"], unlike);
    assert!(
        told.contains("GPU 0 is twin of a GPU, but GPU 1 is another twin, and an engine serves one of them"),
        "{told}"
    );
    let told = refused(&["gpus=1"], unlike);
    assert!(
        told.contains("built for another chip: twin of a GPU, but here it is another twin"),
        "{told}"
    );
    let told = refused(&["gpus=0,5"], "discrete,devices=2");
    assert!(
        told.contains("finds 2 devices here, so there is no device 5"),
        "{told}"
    );
    // So many batches learning takes of every GPU, however short the warm-up.
    let told = refused(&["use_graphs=false"], "discrete,devices=2,device=1,lost=8");
    assert!(
        told.contains("on gpu1: ") && told.contains("CUDA_ERROR_ECC_UNCORRECTABLE (214)"),
        "{told}"
    );
}

#[test]
fn types_are_converted_where_a_number_says_enough_and_refused_where_not() {
    for (environment, settings) in [
        (&[("TWIN_TRT_INPUT", "fp16")][..], &[][..]),
        (&[("TWIN_TRT_OUTPUT", "index")], &["use_direct_host_access=false"]),
        (&[("TWIN_TRT_FIXED", "1")], &[]),
    ] {
        let place = Place::new();
        place.build(&["--batch", "4"], environment);
        for scenario in ["SingleStream", "Offline"] {
            let ended = place.bench(scenario, "AccuracyOnly", settings, &[]);
            assert_eq!(ended.code, 0, "{environment:?}: {ended:?}");
            assert_eq!(place.answers(), expected(), "{environment:?}");
        }
    }
    let place = Place::new();
    place.build(&[], &[("TWIN_TRT_INPUT", "int8")]);
    let refused = place.fault(&[], &[]);
    assert!(
        refused.contains("its engine takes int8 [1, 1, 8, 8] image, but its samples are fp32"),
        "{refused}"
    );
}

#[test]
fn a_driver_or_a_device_that_fails_is_told_by_its_own_words() {
    let place = Place::new();
    place.build(&[], &[]);
    let cases = [
        (
            "no-device",
            "cuInit failed: CUDA_ERROR_NO_DEVICE (100), no CUDA-capable device is detected",
        ),
        (
            "version=11020",
            "the CUDA driver is for CUDA 11.2, but at least 11.4 is needed",
        ),
        (
            "memory=200",
            "cuMemHostAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (2), out of memory",
        ),
        (
            "launch=1",
            "TensorRT does not run the engine: Error Code 1: Cuda Runtime (CUDA error 701 in enqueue)",
        ),
        (
            "late=20",
            "CUDA_ERROR_LAUNCH_FAILED (719), unspecified launch failure",
        ),
        (
            "lost=20",
            "CUDA_ERROR_ECC_UNCORRECTABLE (214), uncorrectable ECC error encountered",
        ),
    ];
    for (faults, words) in cases {
        let settings = ["use_graphs=false", "warmup_duration=0"];
        let told = place.fault(&settings, &[("TWIN_CUDA_FAULTS", faults)]);
        assert!(told.contains(words), "{faults}: {told}");
    }
    let told = place.fault(&[], &[("TWIN_CUDA_FAULTS", "memory=200")]);
    assert!(
        told.contains("stream 1 of gpu cannot be made: beside its tensors it takes 1 KiB of the device's memory, of which 0 KiB are free"),
        "{told}"
    );
    // The log of a run that ended so is kept, and says that it is no result.
    let detail = fs::read_to_string(place.fixture.path("logs/mlperf_log_detail.txt")).unwrap();
    assert!(detail.contains("\"is_error\": true"), "{detail}");

    // What cannot be captured is enqueued, unless graphs are asked for by name.
    let capture = [("TWIN_CUDA_FAULTS", "capture")];
    let ended = place.bench("SingleStream", "AccuracyOnly", &[], &capture);
    assert_eq!((ended.code, place.answers()), (0, expected()), "{ended:?}");
    let told = place.fault(&["use_graphs=true"], &capture);
    assert!(
        told.contains("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)"),
        "{told}"
    );

    place.twins.compile_cuda(&["-DTWIN_WITHOUT_GRAPHS"]);
    let told = place.fault(&[], &[]);
    assert!(
        told.contains("is older than CUDA 11.4: it lacks cuGraphLaunch"),
        "{told}"
    );
    fs::remove_file(place.twins.cuda().join("libcuda.so.1")).unwrap();
    let told = place.fault(&[], &[]);
    assert!(
        told.contains("no CUDA driver was found") && told.contains("libcuda.so.1"),
        "{told}"
    );
}

#[test]
fn an_engine_that_does_not_fit_is_refused_with_the_command_that_builds_one() {
    let place = Place::new();
    let told = place.fault(&[], &[]);
    assert!(
        told.contains("there is none for this model on the GPU; this makes one: regatta-agent engine build --onnx ./model.onnx --batch 1 --cache "),
        "{told}"
    );
    let engine = place.build(&["--batch", "4"], &[]);
    let key = engine.file_name().unwrap().to_str().unwrap().to_owned();
    let offline = |settings: &[&str]| {
        let ended = place.bench("Offline", "AccuracyOnly", settings, &[]);
        assert_eq!(ended.code, 3, "{ended:?}");
        ended.stderr
    };
    let told = offline(&["gpu_batch_size=8"]);
    assert!(
        told.contains("none of 1 has a batch of 8; this makes one"),
        "{told}"
    );
    let told = offline(&["gpu_copy_streams=3"]);
    assert!(
        told.contains("has 1 optimisation profile(s), but 3 contexts are to run at once")
            && told.contains("--batch 4 --profiles 3"),
        "{told}"
    );
    let told = offline(&["precision=int8"]);
    assert!(told.contains("--precision int8"), "{told}");
    let told = offline(&["max_dlas=1"]);
    assert!(told.contains("there is none for this model on DLA"), "{told}");
    let told = offline(&["max_dlas=1", &format!("dla_engine={key}")]);
    assert!(told.contains("was built for the GPU"), "{told}");
    // Two that fit equally well are not chosen between.
    place.build(&["--batch", "4", "--precision", "fp16"], &[]);
    let told = offline(&[]);
    assert!(
        told.contains("fit; name one of them by the setting gpu_engine"),
        "{told}"
    );
    let named = format!("gpu_engine={key}");
    let ended = place.bench("Offline", "AccuracyOnly", &[&named], &[]);
    assert_eq!((ended.code, place.answers()), (0, expected()), "{ended:?}");

    // From another board, another version, of another model, and not TensorRT's at all.
    let manifest = engine.join("engine.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let entry: serde_json::Value = serde_json::from_str(&text).unwrap();
    let changed = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut entry = entry.clone();
        change(&mut entry);
        fs::write(&manifest, entry.to_string()).unwrap();
        offline(&[&named])
    };
    let told = changed(&|entry| entry["manifest"]["chip"] = "another board".into());
    assert!(
        told.contains("the engine was built for another chip: another board"),
        "{told}"
    );
    let told = changed(&|entry| entry["manifest"]["tensorrt"] = "8.6.1".into());
    assert!(
        told.contains("another TensorRT version: 8.6.1, but here it is 8.5.2"),
        "{told}"
    );
    let told = changed(&|entry| entry["manifest"]["onnx_sha256"] = "00".into());
    assert!(told.contains("was built from another model"), "{told}");
    let told = changed(&|entry| entry["plan_sha256"] = "00".into());
    assert!(told.contains("was changed after it was built"), "{told}");
    let plan = fs::read(engine.join("engine.plan")).unwrap();
    fs::write(engine.join("engine.plan"), "no plan").unwrap();
    let told = changed(&|entry| {
        // SHA-256 of "no plan".
        entry["plan_sha256"] = NO_PLAN.into();
    });
    assert!(
        told.contains("TensorRT does not load the plan: Serialization assertion"),
        "{told}"
    );
    fs::write(&manifest, &text).unwrap();
    fs::write(engine.join("engine.plan"), &plan).unwrap();
    // What TensorRT says of a plan that the manifest was wrong about.
    let wrong = "The engine plan file is generated on an incompatible device, expecting compute 8.7 got compute 7.2, please rebuild.";
    let ended = place.bench(
        "Offline",
        "AccuracyOnly",
        &[&named],
        &[("TWIN_TRT_REFUSES", wrong)],
    );
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(
        ended
            .stderr
            .contains(&format!("TensorRT does not load the plan: {wrong}")),
        "{ended:?}"
    );
    fs::remove_dir_all(place.twins.libraries()).unwrap();
    assert!(offline(&[]).contains("no TensorRT was found"), "{told}");
}

#[test]
fn int8_is_calibrated_over_samples_once() {
    let place = Place::new();
    let build = |flags: &[&str], environment: &[(&str, &str)]| {
        let usual = ["engine", "build", "--onnx", "model.onnx", "--precision", "int8"];
        place.agent(&[&usual, flags].concat(), environment)
    };
    let samples = ["--calibration-samples", "samples"];
    let four = [&samples[..], &["--batch", "4"]].concat();
    let built = build(&four, &[]);
    assert_eq!(built.code, 0, "{built:?}");
    assert!(
        built.stderr.contains("calibrating over 40 samples"),
        "{}",
        built.stderr
    );
    let caches = || {
        let entries = fs::read_dir(place.twins.engines()).unwrap();
        let named = entries.map(|entry| entry.unwrap().path()).filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("calibration-")
        });
        named
            .map(|path| fs::read_to_string(path).unwrap())
            .collect::<Vec<_>>()
    };
    // Every sample has one bright pixel, so their number is the sum of all that came.
    assert_eq!(caches(), ["TRT-8502-EntropyCalibration2\nbatches: 10\nsum: 40\n"]);
    let again = build(&four, &[]);
    assert!(again.stderr.contains("found in "), "{}", again.stderr);
    let other_batch = build(&[&samples[..], &["--batch", "2"]].concat(), &[]);
    assert!(
        other_batch.stderr.contains("scales found in "),
        "{}",
        other_batch.stderr
    );

    // Some of them, by a list; all of them in one file.
    fs::write(place.fixture.path("list.txt"), "sample3 1\nsample5\n").unwrap();
    let listed = build(&[&samples[..], &["--calibration-list", "list.txt"]].concat(), &[]);
    assert_eq!(listed.code, 0, "{listed:?}");
    assert!(caches().contains(&"TRT-8502-EntropyCalibration2\nbatches: 2\nsum: 2\n".to_owned()));
    let data: Vec<u8> = (0..5).flat_map(fixture::pixels).collect();
    let together = fixture::npy("<f4", &[5, 1, 8, 8], &data);
    fs::write(place.fixture.path("together.npy"), together).unwrap();
    let one_file = build(&["--calibration-samples", "together.npy", "--batch", "2"], &[]);
    assert_eq!(one_file.code, 0, "{one_file:?}");
    assert!(caches().contains(&"TRT-8502-EntropyCalibration2\nbatches: 2\nsum: 4\n".to_owned()));

    let refused = |flags: &[&str], environment: &[(&str, &str)], code: i32, words: &str| {
        let ended = build(flags, environment);
        assert_eq!(ended.code, code, "{ended:?}");
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    };
    let bytes = fixture::npy("|i1", &[2, 64], &[0; 128]);
    fs::write(place.fixture.path("bytes.npy"), bytes).unwrap();
    let small = fixture::npy("<f4", &[2, 2], &[0; 16]);
    fs::write(place.fixture.path("small.npy"), small).unwrap();
    for (file, code, words) in [
        ("bytes.npy", 2, "holds '|i1' (2, 64), but must be float32"),
        ("small.npy", 2, "a calibration sample is not of the input's size"),
        ("nowhere.npy", 2, "nowhere.npy cannot be read"),
        ("map.txt", 2, "is no readable .npy file"),
    ] {
        refused(&["--calibration-samples", file], &[], code, words);
    }
    refused(
        &["--calibration-samples", "small.npy", "--batch", "3"],
        &[],
        2,
        "do not fill one batch of 3",
    );
    let full = [("TWIN_CUDA_FAULTS", "memory=100")];
    let other = fixture::npy("<f4", &[1, 1, 8, 8], &fixture::pixels(7));
    fs::write(place.fixture.path("other.npy"), other).unwrap();
    let other = ["--calibration-samples", "other.npy"];
    refused(&other, &full, 3, "CUDA_ERROR_OUT_OF_MEMORY");
    let fp16 = place.agent(
        &[&["engine", "build", "--onnx", "model.onnx"], &samples[..]].concat(),
        &[],
    );
    assert_eq!(fp16.code, 2, "{fp16:?}");
}

/// The real TensorRT-RTX builds here without a driver, and what needs one says so.
#[cfg(feature = "tract")]
#[test]
fn without_a_driver_the_real_tensorrt_builds_and_does_not_run() {
    let root = env::var_os("REGATTA_TENSORRT_TESTS").map(PathBuf::from);
    let Some(root) = root.filter(|root| root.join("libs/libtensorrt_rtx.so.1").exists()) else {
        assert!(
            env::var_os("CI").is_none_or(|value| value != "true"),
            "CI leaves nothing out: REGATTA_TENSORRT_TESTS has no TensorRT-RTX"
        );
        println!(
            "left out: no TensorRT-RTX in REGATTA_TENSORRT_TESTS; cross/tensorrt/for-tests.sh brings it"
        );
        return;
    };
    if PathBuf::from("/proc/driver/nvidia").exists() {
        println!("left out: this machine has a driver");
        return;
    }
    let place = Place::new();
    let (libs, shims) = (root.join("libs"), root.join("shims"));
    let real = [
        ("REGATTA_TENSORRT", libs.to_str().unwrap()),
        ("REGATTA_PLUGINS", shims.to_str().unwrap()),
        ("LD_LIBRARY_PATH", ""),
    ];
    place.build(&["--batch", "8"], &real);
    let told = place.fault(&[], &real);
    assert!(
        told.starts_with(
            "regatta-agent: the tensorrt engine cannot be used here: no CUDA driver was found (libcuda.so.1"
        ),
        "{told}"
    );
}

const NO_PLAN: &str = "fc61c3d56ff3a9229b46cec68ecc9f99e90b46003b68c50a9a54012f50c32d76";
