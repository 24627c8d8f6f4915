//! A network with ResNet50's input and scores that names the colour of an image. It has only operations that TensorRT's fake computes.

use regatta_tests::jpeg::Colour;

use super::onnx::{FLOAT, INT64, floats, input, integers, model_of, node, output, weight};

/// Class 0 of the network is background, so class N is label N - 1.
const CLASSES: u16 = 1001;
const SIDE: i64 = 224;
/// The reference's means of red, green and blue, which preprocessing subtracts.
const MEANS: [f32; 3] = [123.68, 116.78, 103.94];

/// Returns the colours; the index of a colour is its label. They are farther apart than rounding could move them.
pub(crate) fn colours() -> Vec<Colour> {
    let mut colours = Vec::new();
    for brightness in [60, 95, 130, 165, 200] {
        for blue in [105, 150] {
            for red in [90, 115, 140, 165] {
                colours.push([brightness, blue, red]);
            }
        }
    }
    colours
}

/// Returns a colour as samples contain it: red, green and blue less their means.
fn in_samples(colour: Colour) -> [f32; 3] {
    let [brightness, blue, red] = colour.map(f32::from);
    let (blue, red) = (blue - 128.0, red - 128.0);
    let pixel = [
        brightness + 1.402 * red,
        brightness - 0.344 * blue - 0.714 * red,
        brightness + 1.772 * blue,
    ];
    [0, 1, 2].map(|channel| pixel[channel] - MEANS[channel])
}

/// Returns the network in ONNX: one layer finds the colour that is nearest to the pixel in the middle.
pub(crate) fn model() -> Vec<u8> {
    let mut weights = vec![[0.0_f32; 3]];
    // A class without a colour never wins.
    let mut bias = vec![-1e9_f32];
    for colour in colours().into_iter().map(in_samples) {
        bias.push(-colour.iter().map(|value| value * value).sum::<f32>() / 2.0);
        weights.push(colour);
    }
    weights.resize(usize::from(CLASSES), [0.0; 3]);
    bias.resize(usize::from(CLASSES), -1e9);
    let middle = SIDE * SIDE / 2 + SIDE / 2;
    let classes = i64::from(CLASSES);
    model_of(&[
        node("Reshape", &["input_tensor:0", "channels"], "pixels", &[]),
        node("Gather", &["pixels", "middle"], "picked", &[("axis", 2)]),
        node("Reshape", &["picked", "colour_shape"], "colour", &[]),
        node("Gemm", &["colour", "weights", "bias"], "scores", &[("transB", 1)]),
        weight("channels", INT64, &[3], &integers(&[0, 3, SIDE * SIDE])),
        weight("middle", INT64, &[1], &integers(&[middle])),
        weight("colour_shape", INT64, &[2], &integers(&[0, 3])),
        weight("weights", FLOAT, &[classes, 3], &floats(&weights.concat())),
        weight("bias", FLOAT, &[classes], &floats(&bias)),
        input("input_tensor:0", &[3, SIDE, SIDE]),
        output("scores", &[classes]),
    ])
}
