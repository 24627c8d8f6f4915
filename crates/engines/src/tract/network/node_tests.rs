//! The tests of the ONNX library for each operator: a network is computed as they say or refused, never computed in another way.

use std::{
    fmt::Write as _,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use tract_onnx::{
    pb::{ModelProto, TensorProto},
    prelude::{DatumType, Framework as _, IntoRunnable as _, TVec, Tensor, TractResult},
    tensor::{load_tensor, proto_from_reader},
    tract_core::value::{IntoTValue as _, TValue},
    tract_hir::infer::InferenceFact,
};

use regatta_test_support::{case, oracle};

use super::OnnxNetwork;
use crate::panics::panic_text;

/// A test of the library.
#[derive(Clone)]
struct NodeTest {
    name: String,
    relative: f64,
    absolute: f64,
    model: ModelProto,
    inputs: Vec<TensorProto>,
    outputs: Vec<TensorProto>,
}

impl NodeTest {
    fn read(root: &Path, line: &str) -> Self {
        let [name, relative, absolute] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let directory = root.join(name);
        let tensors = |kind: &str| {
            let path = |number| directory.join(format!("{kind}_{number}.pb"));
            let files = (0..).map(path).take_while(|path| path.is_file());
            files
                .map(|path| proto_from_reader(fs::File::open(path).unwrap()).unwrap())
                .collect()
        };
        Self {
            name: name.to_owned(),
            relative: relative.parse().unwrap(),
            absolute: absolute.parse().unwrap(),
            model: tract_onnx::onnx()
                .proto_model_for_path(directory.join("model.onnx"))
                .unwrap(),
            inputs: tensors("input"),
            outputs: tensors("output"),
        }
    }

    /// Makes all inputs but the first weights of the network, as they are in networks that are used.
    fn with_weights(mut self) -> Self {
        let graph = self.model.graph.as_mut().unwrap();
        let names: Vec<String> = graph.input.iter().map(|input| input.name.clone()).collect();
        for (name, mut tensor) in names.into_iter().zip(std::mem::take(&mut self.inputs)) {
            if self.inputs.is_empty() {
                self.inputs.push(tensor);
                continue;
            }
            graph.input.retain(|input| input.name != name);
            tensor.name = name;
            graph.initializer.push(tensor);
        }
        self
    }

    fn run(&self) -> Result<TVec<TValue>, String> {
        let run = || -> TractResult<_> {
            let network = OnnxNetwork::new(self.model.clone(), None)?;
            let inputs: Vec<Tensor> = self.inputs.iter().map(tensor).collect::<TractResult<_>>()?;
            let facts = inputs
                .iter()
                .map(|input| InferenceFact::dt_shape(input.datum_type(), input.shape()));
            let model = network.typed(facts)?.into_optimized()?.into_runnable()?;
            model.run(inputs.into_iter().map(Tensor::into_tvalue).collect())
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(outputs)) => Ok(outputs),
            Ok(Err(error)) => Err(format!("{error:#}")),
            Err(panic) => Err(format!("panic: {}", panic_text(panic.as_ref()))),
        }
    }

    /// Returns how the outputs differ from the right ones, if they do.
    fn difference(&self, outputs: &[TValue]) -> Option<String> {
        if outputs.len() != self.outputs.len() {
            return Some(format!("{} outputs, not {}", outputs.len(), self.outputs.len()));
        }
        let mut pairs = outputs.iter().zip(&self.outputs);
        pairs.find_map(|(found, expected)| {
            let expected = tensor(expected).unwrap();
            let (shape, datum) = (found.shape(), found.datum_type());
            if shape != expected.shape() || !is_same(datum, expected.datum_type()) {
                let (other, other_datum) = (expected.shape(), expected.datum_type());
                return Some(format!("{datum:?} {shape:?}, not {other_datum:?} {other:?}"));
            }
            let [found, expected] = [values(found), values(&expected)];
            let finite = expected.iter().filter(|value| value.is_finite());
            let largest = finite.fold(1.0_f64, |largest, value| largest.max(value.abs()));
            // Sums have another order, and half floats a step of a thousandth.
            let absolute = self.absolute.max(1e-6 * largest);
            let relative = if datum == DatumType::F16 {
                2e-3
            } else {
                self.relative
            };
            let place = found.iter().zip(&expected).position(|(one, other)| {
                let is_equal = one == other || (one.is_nan() && other.is_nan());
                let is_near = (one - other).abs() <= absolute + relative * other.abs();
                !(is_equal || is_near)
            })?;
            Some(format!(
                "value {place} is {}, not {}",
                found[place], expected[place]
            ))
        })
    }
}

fn tensor(proto: &TensorProto) -> TractResult<Tensor> {
    load_tensor(&*tract_onnx::onnx().provider, proto, None)
}

/// Returns whether two types have the same bytes.
fn is_same(one: DatumType, other: DatumType) -> bool {
    one == other || one.unquantized() == other.unquantized()
}

fn values(tensor: &Tensor) -> Vec<f64> {
    if tensor.datum_type() == DatumType::String {
        let text = format!("{:?}", tensor.dump(true));
        return text.bytes().map(f64::from).collect();
    }
    let values = tensor.cast_to::<f64>().unwrap();
    values
        .try_as_plain_ram()
        .unwrap()
        .as_slice::<f64>()
        .unwrap()
        .to_vec()
}

/// Tests that tract fails with values that are not finite, and in no other way: its largest value of nothing but minus infinity is the lowest
/// finite one.
const NOT_FINITE: [&str; 3] = [
    "test_attention_23_boolmask_fullymasked_row_nan_robustness_expanded",
    "test_attention_23_fullymasked_qk_matmul_output_mode3_zero_expanded",
    "test_attention_4d_causal_nonpad_negative_offset_structural_empty_expanded",
];

/// The snapshot lists the tests whose networks are refused, with all inputs but the first as weights.
#[test]
fn operators_are_computed_as_onnx_says_or_refused() {
    let Some(python) = oracle::onnx() else { return };
    let place = tempfile::tempdir().unwrap();
    oracle::run(&python, "onnx", "node_tests.py", &[place.path().as_os_str()]);
    let list = fs::read_to_string(place.path().join("tests.txt")).unwrap();
    let (mut right, mut wrong, mut refused) = (0, String::new(), String::new());
    let has_known_difference = |name: &str| NOT_FINITE.contains(&name);
    for line in list.lines() {
        let test = NodeTest::read(place.path(), line);
        let variants = [test.clone().with_weights(), test];
        for (number, test) in variants.iter().enumerate() {
            match test.run().map(|outputs| test.difference(&outputs)) {
                Ok(None) => right += 1,
                Ok(Some(_)) if has_known_difference(&test.name) => {}
                Ok(Some(difference)) => writeln!(wrong, "{}: {difference}", test.name).unwrap(),
                Err(_) if number == 0 => writeln!(refused, "{}", test.name).unwrap(),
                // Networks of variable shapes, which tract cannot prepare.
                Err(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(right > 1500, "{right} tests pass");
    insta::assert_snapshot!(refused);
}

/// Networks that were once computed wrong or not at all, compared with ONNX Runtime.
#[test]
fn old_operators_and_reversed_sequences_are_computed_as_by_onnx_runtime() {
    let Some(python) = oracle::onnxruntime() else {
        return;
    };
    let Some(models) = case("benchmarks/models") else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let (input, output) = (place.path().join("in"), place.path().join("out.npy"));
    for (name, shape) in [
        ("conv-symbolic-batch-only", &[1, 4, 8, 8][..]),
        ("conv-symbolic-value-info", &[1, 4, 8, 8]),
        ("lstm-reverse", &[1, 6, 16]),
        ("pad-negative", &[1, 4, 8, 8]),
        ("squeeze-without-axes", &[1, 4, 8, 8]),
        ("upsample-9", &[1, 4, 8, 8]),
    ] {
        let model = models.join(format!("{name}.onnx"));
        let values: Vec<f32> = (0..shape.iter().product::<usize>())
            .map(|at| ((at * 37 % 101) as f32 - 50.0) / 25.0)
            .collect();
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        fs::write(&input, bytes).unwrap();
        let arguments = [model.as_os_str(), input.as_os_str(), output.as_os_str()];
        oracle::run(&python, "onnxruntime", "outputs.py", &arguments);
        let bytes = fs::read(&output).unwrap();
        let expected = npyz::NpyFile::new(&bytes[..]).unwrap();
        let expected_shape: Vec<usize> = expected.shape().iter().map(|&dim| dim as usize).collect();
        let expected: Vec<f32> = expected.into_vec().unwrap();

        let network = OnnxNetwork::read(&model).unwrap();
        let fact = InferenceFact::dt_shape(DatumType::F32, shape);
        let runnable = network
            .typed([fact])
            .unwrap()
            .into_optimized()
            .unwrap()
            .into_runnable()
            .unwrap();
        let tensor = Tensor::from_shape(shape, &values).unwrap();
        let outputs = runnable
            .run([tensor.into_tvalue()].into_iter().collect())
            .unwrap();
        assert_eq!(outputs[0].shape(), expected_shape, "{name}");
        let far = self::values(&outputs[0])
            .into_iter()
            .zip(&expected)
            .find(|(found, expected)| (found - f64::from(**expected)).abs() > 1e-5);
        assert_eq!(far, None, "{name}");
    }
}
