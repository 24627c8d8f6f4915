//! Pseudo-random weights for small networks, the same in every run. The generator (xorshift64) stays as it is: what tests expect of the networks,
//! such as detections above a threshold, was chosen for these weights.

use tract_onnx::pb::{TensorProto, tensor_proto::DataType};

/// The generator.
pub(crate) struct RandomWeights(u64);

impl RandomWeights {
    /// Creates the generator. All begin alike.
    pub(crate) const fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns a tensor of weights between `-most` and `most`.
    pub(crate) fn tensor(&mut self, name: &str, dims: &[i64], most: f32) -> TensorProto {
        let count = usize::try_from(dims.iter().product::<i64>()).unwrap();
        let mut next = || {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            f32::from((self.0 >> 48) as i16) / 32768.0 * most
        };
        TensorProto {
            name: name.to_owned(),
            dims: dims.to_vec(),
            data_type: DataType::Float as i32,
            float_data: (0..count).map(|_| next()).collect(),
            ..TensorProto::default()
        }
    }
}
