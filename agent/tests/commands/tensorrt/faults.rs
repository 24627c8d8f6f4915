//! Tests of faults of driver and device, each with its own message.

use std::fs;

use crate::support::place::{Place, expected};

#[test]
fn a_failing_driver_or_device_is_reported_with_its_own_message() {
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
            "TensorRT failed to execute the engine: Error Code 1: Cuda Runtime (CUDA error 701 in enqueue)",
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
        let message = place.fault(&settings, &[("FAKE_CUDA_FAULTS", faults)]);
        assert!(message.contains(words), "{faults}: {message}");
    }
    let message = place.fault(&[], &[("FAKE_CUDA_FAULTS", "memory=200")]);
    assert!(
        message.contains("stream 1 of gpu cannot be created: without its tensors it needs 1 KiB of the device's memory, of which 0 KiB are free"),
        "{message}"
    );
    // Such a run keeps its log, which says that it is not a result.
    let detail = fs::read_to_string(place.fixture.path("logs/mlperf_log_detail.txt")).unwrap();
    assert!(detail.contains("\"is_error\": true"), "{detail}");

    // Work that cannot be captured is enqueued, unless the settings require graphs.
    let capture = [("FAKE_CUDA_FAULTS", "capture")];
    let ended = place.bench("SingleStream", "AccuracyOnly", &[], &capture);
    assert_eq!((ended.code, place.answers()), (0, expected()), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("CUDA cannot capture the engine as a graph; its batches are enqueued instead"),
        "{ended:?}"
    );
    let message = place.fault(&["use_graphs=true"], &capture);
    assert!(
        message.contains("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)"),
        "{message}"
    );

    place.fakes.compile_cuda(&["-DFAKE_WITHOUT_GRAPHS"]);
    let message = place.fault(&[], &[]);
    assert!(
        message.contains("is older than CUDA 11.4: it has no cuGraphLaunch"),
        "{message}"
    );
    fs::remove_file(place.fakes.cuda().join("libcuda.so.1")).unwrap();
    let message = place.fault(&[], &[]);
    assert!(
        message.contains("no CUDA driver was found") && message.contains("libcuda.so.1"),
        "{message}"
    );
}
