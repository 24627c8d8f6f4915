//! Tests of several GPUs in one run: each has a share of the work, under both LoadGens.

use std::{env, fs, io::BufReader};

use regatta_test_support::official_loadgen;
use regatta_types::response_units::ResponseUnits;

use crate::support::place::{Place, expected};

/// Two GPUs with memory of their own: every scenario, each with a share of the work where queries overlap.
#[test]
fn several_gpus_share_the_work() {
    let place = Place::new();
    let two = [("FAKE_CUDA_FAULTS", "discrete,devices=2")];
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
            &[("FAKE_CUDA_FAULTS", faults)],
        );
        let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        report["engine"].as_str().unwrap().to_owned()
    };
    fs::write(
        place.fixture.path("user.conf"),
        "*.Offline.target_qps = 2000\n*.Server.target_qps = 2000\n",
    )
    .unwrap();
    // The next free GPU takes a batch: times of fakes on a busy machine might leave one out. With kernels of 10 ms there is work
    // for half a second, so both get some although threads wait for a processor.
    for scenario in ["Offline", "Server"] {
        let settings = ["gpu_batch_size=4", "sharing=first-free"];
        let engine = report(scenario, &settings, "discrete,devices=2,slow=10000");
        assert!(
            engine.contains("on 2 x fake GPU (CUDA 11.4, by copies; gpu0: engine ")
                && engine.contains("; gpu1: engine "),
            "{engine}"
        );
        both_took_part(&place, scenario);
    }
    let engine = report("Offline", &["gpus=1"], "discrete,devices=2");
    assert!(
        engine.contains("on fake GPU (") && engine.contains("; gpu: engine "),
        "{engine}"
    );
    // A GPU of another kind is left out, and refused when it is named.
    let unlike = "discrete,devices=2,unlike";
    let ended = place.bench("Offline", "AccuracyOnly", &[], &[("FAKE_CUDA_FAULTS", unlike)]);
    assert!(
        ended
            .stderr
            .contains("GPU 1 (another fake GPU) is not used: it is of another kind than GPU 0"),
        "{ended:?}"
    );
    assert!(report("Offline", &[], unlike).contains("on fake GPU ("));
    let refused = |settings: &[&str], faults: &str| {
        let ended = place.bench(
            "Offline",
            "AccuracyOnly",
            settings,
            &[("FAKE_CUDA_FAULTS", faults)],
        );
        assert_eq!(ended.code, 3, "{ended:?}");
        ended.stderr
    };
    let message = refused(&["gpus=0,1"], unlike);
    assert!(
        message.contains(
            "GPU 0 is fake GPU, but GPU 1 is another fake GPU, and an engine runs only on one kind"
        ),
        "{message}"
    );
    let message = refused(&["gpus=1"], unlike);
    assert!(
        message.contains("built for another chip: fake GPU, but here it is another fake GPU"),
        "{message}"
    );
    let message = refused(&["gpus=0,5"], "discrete,devices=2");
    assert!(
        message.contains("there is no CUDA device 5: the driver reports 2 devices"),
        "{message}"
    );
    // The number of batches of each GPU in the shortest warm-up.
    let message = refused(&["use_graphs=false"], "discrete,devices=2,device=1,lost=8");
    assert!(
        message.contains("on gpu1: ") && message.contains("CUDA_ERROR_ECC_UNCORRECTABLE (214)"),
        "{message}"
    );
}

/// Checks that each of two GPUs has answers in the last run.
fn both_took_part(place: &Place, scenario: &str) {
    let file = fs::File::open(place.fixture.path("logs/response_units.bin")).unwrap();
    let units = ResponseUnits::read(&mut BufReader::new(file)).unwrap();
    let counts: Vec<_> = units.counts().collect();
    assert!(
        matches!(counts[..], [("gpu0", 1..), ("gpu1", 1..)]),
        "{scenario}: {counts:?}"
    );
}

/// MLCommons' own LoadGen issues the queries of its Server, one by one.
#[test]
fn the_official_loadgens_server_is_shared_by_two_gpus() {
    let Some(plugin) = official_loadgen::plugin_file("6.0.17") else {
        return;
    };
    let mut place = Place::new();
    place.loadgen = "official";
    let plugins = [place.fakes.shims(), plugin.parent().unwrap().to_owned()];
    let plugins = env::join_paths(plugins).unwrap();
    let with = |faults| {
        [
            ("FAKE_CUDA_FAULTS", faults),
            ("REGATTA_PLUGINS", plugins.to_str().unwrap()),
        ]
    };
    let streams = ["--batch", "8", "--profiles", "2"];
    place.build(&streams, &with("discrete,devices=2"));
    let rate = "*.Server.target_qps = 2000\n";
    fs::write(place.fixture.path("user.conf"), rate).unwrap();
    let settings = ["gpu_batch_size=4", "gpu_copy_streams=2", "deque_timeout_usec=500"];
    let accuracy = place.bench("Server", "AccuracyOnly", &settings, &with("discrete,devices=2"));
    assert_eq!((accuracy.code, place.answers()), (0, expected()), "{accuracy:?}");
    // With kernels of 10 ms, both have work after the first batches.
    let slow = with("discrete,devices=2,slow=10000");
    let ended = place.bench("Server", "PerformanceOnly", &settings, &slow);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(report["metric"]["value"].as_f64().unwrap() > 0.0, "{report:#}");
    assert!(report["loadgen"].to_string().contains("6.0.17"), "{report:#}");
    both_took_part(&place, "Server");
}
