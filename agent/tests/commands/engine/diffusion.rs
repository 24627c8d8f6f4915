//! The real TensorRT-RTX builds the networks of a small Stable Diffusion XL, as the tool exports them: with weights in files beside the networks.

use regatta_test_support::oracle;

use super::Place;

#[test]
fn the_real_tensorrt_builds_the_networks_of_stable_diffusion() {
    let (Some(place), Some(python)) = (Place::real(), oracle::onnx()) else {
        return;
    };
    let path = |name: &str| place.scratch.path().join(name);
    let (pipeline, networks) = (path("pipeline"), path("networks"));
    let words = ["pipeline".as_ref(), pipeline.as_os_str()];
    oracle::run(&python, "diffusion", "small.py", &words);
    let words = [pipeline.as_os_str(), networks.as_os_str()];
    oracle::run(&python, "diffusion", "../../../tools/export-sdxl", &words);
    for network in ["text_encoders", "denoiser", "image_decoder"] {
        assert!(networks.join(network).with_extension("weights").is_file());
        let onnx = networks.join(network).with_extension("onnx");
        let onnx = onnx.to_str().unwrap();
        let built = place.engine(&["build", "--onnx", onnx, "--batch", "2", "--cache", "engines"]);
        assert!(built.status.success(), "{network}: {built:?}");
    }
}
