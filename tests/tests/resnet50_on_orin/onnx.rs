//! Writes small networks in ONNX, field by field and with raw weights, as TensorRT's fake reads them.

/// Element types of ONNX.
pub(crate) const FLOAT: u64 = 1;
pub(crate) const INT64: u64 = 7;

/// Returns a model whose network has these nodes, weights, inputs and outputs.
pub(crate) fn model_of(parts: &[Vec<u8>]) -> Vec<u8> {
    let graph = [bytes(2, b"network"), parts.concat()].concat();
    let operators = bytes(8, &[bytes(1, b""), number(2, 13)].concat());
    [number(1, 7), bytes(7, &graph), operators].concat()
}

/// Returns an input of floats, whose batch dimension is free.
pub(crate) fn input(name: &str, dims: &[i64]) -> Vec<u8> {
    bytes(11, &value(name, dims))
}

/// Returns an output of floats, whose batch dimension is free.
pub(crate) fn output(name: &str, dims: &[i64]) -> Vec<u8> {
    bytes(12, &value(name, dims))
}

/// Returns a node with one output.
pub(crate) fn node(kind: &str, inputs: &[&str], output: &str, attributes: &[(&str, u64)]) -> Vec<u8> {
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

/// Returns a weight with its elements as bytes.
pub(crate) fn weight(name: &str, kind: u64, dims: &[i64], raw: &[u8]) -> Vec<u8> {
    let mut fields: Vec<u8> = dims
        .iter()
        .flat_map(|&dim| number(1, dim.unsigned_abs()))
        .collect();
    fields.extend([number(2, kind), bytes(8, name.as_bytes()), bytes(9, raw)].concat());
    bytes(5, &fields)
}

/// Returns the name and shape of an input or output, whose batch dimension is free.
fn value(name: &str, dims: &[i64]) -> Vec<u8> {
    let mut shape = bytes(1, &bytes(2, b"batch"));
    shape.extend(
        dims.iter()
            .flat_map(|&dim| bytes(1, &number(1, dim.unsigned_abs()))),
    );
    let tensor = [number(1, FLOAT), bytes(2, &shape)].concat();
    [bytes(1, name.as_bytes()), bytes(2, &bytes(1, &tensor))].concat()
}

pub(crate) fn integers(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

pub(crate) fn floats(numbers: &[f32]) -> Vec<u8> {
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
