//! A network with ResNet50's input and scores that names the colour of an image. It has only operations that TensorRT's fake computes, so the ONNX
//! file is written field by field, with raw weights.

/// Class 0 of the network is background, so class N is label N - 1.
const CLASSES: u16 = 1001;
const SIDE: i64 = 224;
/// The reference's means of red, green and blue, which preprocessing subtracts.
const MEANS: [f32; 3] = [123.68, 116.78, 103.94];
/// Element types of ONNX.
const FLOAT: u64 = 1;
const INT64: u64 = 7;

/// A colour as a JPEG contains it: brightness, and the differences of blue and red.
pub(crate) type Colour = [u8; 3];

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
    let graph = [
        node("Reshape", &["input_tensor:0", "channels"], "pixels", &[]),
        node("Gather", &["pixels", "middle"], "picked", &[("axis", 2)]),
        node("Reshape", &["picked", "colour_shape"], "colour", &[]),
        node("Gemm", &["colour", "weights", "bias"], "scores", &[("transB", 1)]),
        bytes(2, b"colours"),
        weight("channels", INT64, &[3], &integers(&[0, 3, SIDE * SIDE])),
        weight("middle", INT64, &[1], &integers(&[middle])),
        weight("colour_shape", INT64, &[2], &integers(&[0, 3])),
        weight("weights", FLOAT, &[classes, 3], &floats(&weights.concat())),
        weight("bias", FLOAT, &[classes], &floats(&bias)),
        bytes(11, &value("input_tensor:0", &[3, SIDE, SIDE])),
        bytes(12, &value("scores", &[classes])),
    ]
    .concat();
    let operators = bytes(8, &[bytes(1, b""), number(2, 13)].concat());
    [number(1, 7), bytes(7, &graph), operators].concat()
}

fn node(kind: &str, inputs: &[&str], output: &str, attributes: &[(&str, u64)]) -> Vec<u8> {
    let mut fields: Vec<u8> = inputs
        .iter()
        .flat_map(|input| bytes(1, input.as_bytes()))
        .collect();
    fields.extend(
        [
            bytes(2, output.as_bytes()),
            bytes(3, output.as_bytes()),
            bytes(4, kind.as_bytes()),
        ]
        .concat(),
    );
    for (name, value) in attributes {
        // The type of the attribute: an integer.
        let attribute = [bytes(1, name.as_bytes()), number(3, *value), number(20, 2)].concat();
        fields.extend(bytes(5, &attribute));
    }
    bytes(1, &fields)
}

fn weight(name: &str, kind: u64, dims: &[i64], raw: &[u8]) -> Vec<u8> {
    let mut fields: Vec<u8> = dims
        .iter()
        .flat_map(|&dim| number(1, dim.unsigned_abs()))
        .collect();
    fields.extend([number(2, kind), bytes(8, name.as_bytes()), bytes(9, raw)].concat());
    bytes(5, &fields)
}

/// Returns an input or output of the network, whose batch dimension is free.
fn value(name: &str, dims: &[i64]) -> Vec<u8> {
    let mut shape = bytes(1, &bytes(2, b"batch"));
    shape.extend(
        dims.iter()
            .flat_map(|&dim| bytes(1, &number(1, dim.unsigned_abs()))),
    );
    let tensor = [number(1, FLOAT), bytes(2, &shape)].concat();
    [bytes(1, name.as_bytes()), bytes(2, &bytes(1, &tensor))].concat()
}

fn integers(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Encodes a field of a protocol buffer that has bytes: a text or a message.
fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    [
        varint(field << 3 | 2),
        varint(content.len() as u64),
        content.to_vec(),
    ]
    .concat()
}

/// Encodes a field that has a number.
fn number(field: u64, number: u64) -> Vec<u8> {
    [varint(field << 3), varint(number)].concat()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut encoded = Vec::new();
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            encoded.push(low & 0x7f);
            return encoded;
        }
        encoded.push(low | 0x80);
    }
}
