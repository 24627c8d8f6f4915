//! PNG, BMP and WebP have the pixels that OpenCV's `imread` finds. Images that are none get one sentence.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{error::Error as _, fs};

use regatta_prep::{ImageSampleMaker, PrepError};
use regatta_test_support::oracle;
use regatta_types::{
    benchmark::{Benchmark, Dtype, Prep},
    layout::Layout,
    samples::Form,
};
use serde_json::json;

const WIDTH: usize = 61;
const HEIGHT: usize = 47;
/// The largest difference of a value in a WebP that loses details: both decoders round their colours differently.
const LOSSY: u8 = 3;

/// Returns a benchmark whose samples are the pixels themselves.
fn pixels() -> ImageSampleMaker {
    let mut benchmark =
        Benchmark::from_toml(include_str!("../../../configs/benchmarks/resnet50.toml")).unwrap();
    benchmark.model.input_shape = vec![HEIGHT, WIDTH, 3];
    benchmark.model.input_dtype = Dtype::Uint8;
    let own = json!({ "kind": "jpeg-images", "fit": "stretch", "channels_last": true, "classes": 1 });
    benchmark.prep = Some(serde_json::from_value::<Prep>(own).unwrap());
    ImageSampleMaker::new(&benchmark, Form::new(Dtype::Uint8, Layout::Linear), None).unwrap()
}

#[test]
fn every_format_has_the_pixels_of_opencv() {
    let Some(python) = oracle::opencv() else { return };
    let place = tempfile::tempdir().unwrap();
    let images = place.path().join("images");
    let size = [WIDTH.to_string(), HEIGHT.to_string()];
    oracle::run(
        &python,
        "opencv",
        "formats.py",
        &[images.as_os_str(), size[0].as_ref(), size[1].as_ref()],
    );
    let maker = pixels();
    let map = fs::read_to_string(images.join("val_map.txt")).unwrap();
    for name in map.lines().map(|line| line.split(' ').next().unwrap()) {
        let ours = maker.read_data(&images.join(name)).unwrap();
        let theirs = fs::read(images.join(format!("{name}.npy"))).unwrap();
        let theirs = &theirs[theirs.len() - ours.len()..];
        let difference = ours
            .iter()
            .zip(theirs)
            .map(|(own, other)| own.abs_diff(*other))
            .max();
        let bound = if name.starts_with("lossy") { LOSSY } else { 0 };
        assert!(difference.unwrap() <= bound, "{name}: {difference:?}");
    }
    assert_eq!(map.lines().count(), 20);
}

#[test]
fn images_that_cannot_be_read_are_named() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("image.png");
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let error = pixels().read_data(&path).unwrap_err();
        assert!(matches!(error, PrepError::Image { .. }), "{error}");
        error.source().map(ToString::to_string).unwrap_or_default()
    };
    assert!(refused(b"\x89PNG\r\n\x1a\nrest").starts_with("it is not a readable PNG image: "));
    assert!(refused(b"RIFF\x04\0\0\0WEBPVP8 ").starts_with("it is not a readable WebP image: "));
    assert_eq!(
        refused(b"GIF89a"),
        "it is not a readable GIF image: GIF is not supported; hint: convert it to PNG"
    );
    assert!(
        refused(b"II*\0").starts_with("it is not a JPEG"),
        "the name does not matter"
    );
}
