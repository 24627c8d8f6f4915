//! The tests of the ONNX library for each operator: a network is computed as they say or refused, never computed in another way, and never
//! ends in a panic. Further networks are compared with ONNX Runtime and with the library's own evaluator.

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

use regatta_test_support::oracle;

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

    fn run(&self) -> Outcome {
        let run = || -> TractResult<_> {
            let network = OnnxNetwork::new(self.model.clone(), None)?;
            let inputs: Vec<Tensor> = self.inputs.iter().map(tensor).collect::<TractResult<_>>()?;
            computed(&network, inputs)
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(outputs)) => self.difference(&outputs).map_or(Outcome::Right, Outcome::Wrong),
            Ok(Err(_)) => Outcome::Refused,
            Err(panic) => Outcome::Panicked(panic_text(panic.as_ref()).to_owned()),
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
                let is_near = (one - other).abs() <= absolute + relative * other.abs();
                !(is_same_number(*one, *other) || other.is_finite() && is_near)
            })?;
            Some(format!(
                "value {place} is {}, not {}",
                found[place], expected[place]
            ))
        })
    }
}

/// What became of a test.
enum Outcome {
    Right,
    /// How the outputs differ.
    Wrong(String),
    Refused,
    /// The panic's message.
    Panicked(String),
}

/// Computes a network for inputs of one shape.
fn computed(network: &OnnxNetwork, inputs: Vec<Tensor>) -> TractResult<TVec<TValue>> {
    let facts = inputs
        .iter()
        .map(|input| InferenceFact::dt_shape(input.datum_type(), input.shape()));
    let runnable = network.typed(facts)?.into_optimized()?.into_runnable()?;
    runnable.run(inputs.into_iter().map(Tensor::into_tvalue).collect())
}

fn is_same_number(one: f64, other: f64) -> bool {
    one == other || (one.is_nan() && other.is_nan())
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

/// The snapshot lists the tests whose networks are refused, with all inputs but the first as weights.
#[test]
fn operators_are_computed_as_onnx_says_or_refused() {
    let Some(python) = oracle::onnx() else { return };
    let place = tempfile::tempdir().unwrap();
    oracle::run(&python, "onnx", "node_tests.py", &[place.path().as_os_str()]);
    let list = fs::read_to_string(place.path().join("tests.txt")).unwrap();
    let (mut right, mut wrong, mut panics, mut refused) = (0, String::new(), String::new(), String::new());
    for line in list.lines() {
        let test = NodeTest::read(place.path(), line);
        let variants = [test.clone().with_weights(), test];
        for (number, test) in variants.iter().enumerate() {
            match test.run() {
                Outcome::Right => right += 1,
                Outcome::Wrong(difference) => writeln!(wrong, "{}: {difference}", test.name).unwrap(),
                Outcome::Panicked(message) => writeln!(panics, "{} {number}: {message}", test.name).unwrap(),
                Outcome::Refused if number == 0 => writeln!(refused, "{}", test.name).unwrap(),
                // Networks of variable shapes, which tract cannot prepare.
                Outcome::Refused => {}
            }
        }
    }
    assert!(
        wrong.is_empty() && panics.is_empty(),
        "{wrong}\npanics:\n{panics}"
    );
    assert!(right > 1500, "{right} tests pass");
    insta::assert_snapshot!(refused);
}

/// Networks that were once computed wrong or not at all.
#[test]
fn old_operators_reversed_sequences_and_infinite_values_are_computed_as_by_onnx_runtime_or_evaluator() {
    let (Some(onnx), Some(runtime)) = (oracle::onnx(), oracle::onnxruntime()) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    oracle::run(&onnx, "onnx", "networks.py", &[place.path().as_os_str()]);
    let list = fs::read_to_string(place.path().join("networks.txt")).unwrap();
    let mut wrong = String::new();
    for line in list.lines() {
        let (name, shape) = line.split_once(' ').unwrap();
        let shape: Vec<usize> = shape.split(' ').map(|dim| dim.parse().unwrap()).collect();
        let [model, input, output] =
            ["onnx", "in", "out.npy"].map(|suffix| place.path().join(format!("{name}.{suffix}")));
        if !output.exists() {
            let arguments = [model.as_os_str(), input.as_os_str(), output.as_os_str()];
            oracle::run(&runtime, "onnxruntime", "outputs.py", &arguments);
        }
        let bytes = fs::read(&output).unwrap();
        let expected = npyz::NpyFile::new(&bytes[..]).unwrap();
        let expected_shape: Vec<usize> = expected.shape().iter().map(|&dim| dim as usize).collect();
        let expected: Vec<f32> = expected.into_vec().unwrap();
        let bytes = fs::read(&input).unwrap();
        let input: Vec<f32> = bytes
            .chunks_exact(4)
            .map(|four| f32::from_le_bytes(four.try_into().unwrap()))
            .collect();

        let tensor = Tensor::from_shape(&shape, &input).unwrap();
        let outputs = computed(&OnnxNetwork::read(&model).unwrap(), vec![tensor]).unwrap();
        assert_eq!(outputs[0].shape(), expected_shape, "{name}");
        let far = self::values(&outputs[0])
            .into_iter()
            .zip(expected.into_iter().map(f64::from))
            .find(|(found, expected)| {
                !(is_same_number(*found, *expected) || (found - expected).abs() <= 1e-5)
            });
        if let Some((found, expected)) = far {
            writeln!(wrong, "{name}: {found}, not {expected}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(list.lines().count() >= 25, "{list}");
}
