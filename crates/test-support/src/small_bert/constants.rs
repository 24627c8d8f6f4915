//! Constants of the networks that are no weights.

use tract_onnx::pb::{TensorProto, tensor_proto::DataType};

/// Returns a number.
pub(super) fn scalar(name: &str, value: f32) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        data_type: DataType::Float as i32,
        float_data: vec![value],
        ..TensorProto::default()
    }
}

/// Returns axes or a shape.
pub(super) fn integers(name: &str, values: &[i64]) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        dims: vec![i64::try_from(values.len()).unwrap()],
        data_type: DataType::Int64 as i32,
        int64_data: values.to_vec(),
        ..TensorProto::default()
    }
}
