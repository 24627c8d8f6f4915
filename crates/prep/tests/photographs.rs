//! Photographs come out as what they show: prepared as ImageNet's, a network that was really trained on ImageNet finds the class of each.

use regatta_accuracy::measure;
use regatta_catalogue::known;
use regatta_prep::prepare;
use regatta_test_support::oracle;

#[test]
fn photographs_come_out_as_what_they_show() {
    let Some(python) = oracle::efficientnet() else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let (data, network) = (place.join("photographs"), place.join("network.onnx"));
    let run = |script: &str, arguments: &[&std::ffi::OsStr]| {
        oracle::run(&python, "efficientnet", script, arguments)
    };
    run("photographs.py", &[data.as_os_str()]);
    run("network.py", &[network.as_os_str()]);
    let found = known::benchmarks().unwrap();
    let mut benchmark = found.into_iter().find(|one| one.name == "resnet50").unwrap();
    benchmark.dataset.total_samples = 5;
    if let Some(regatta_types::benchmark::Prep::JpegImages(kind)) = &mut benchmark.prep {
        kind.source_bytes = None;
    }
    let report = prepare(&benchmark, &data, place, &mut |_, _| {}).unwrap();
    let log = place.join("mlperf_log_accuracy.json");
    let arguments = [&network, &report.dir, &report.map, &log].map(|path| path.as_os_str());
    let printed = run("classify.py", &arguments);
    let found = measure(&benchmark, None, &log, place).unwrap();
    assert_eq!(
        found.figure.to_string(),
        "accuracy=100.000%, good=5, total=5",
        "{printed}"
    );
}
