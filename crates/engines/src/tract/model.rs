//! Creates plans from an ONNX file: reads the model, checks its inputs and outputs against the benchmark, and fixes the
//! batch size and the length of sequences. This module does not run models.

mod plan_input;
mod sequences;

use std::{error::Error, sync::Arc};

use regatta_types::{
    benchmark::{Dtype, ModelInput, Response},
    documents::EngineKind,
};
use tract_onnx::{
    prelude::{DatumType, IntoRunnable, TDim, TractResult, TypedFact, TypedModel, TypedRunnableModel},
    tract_core::internal::DimLike,
    tract_hir::infer::{Factoid, GenericFactoid, InferenceFact},
};

use self::plan_input::PlanInput;
use super::network::OnnxNetwork;
use crate::{
    DetectionDecoder, EngineError, LoadRequest, ModelMismatch, answer_outputs, fixed_batch, model_file,
    sample_part::{self, SampleInputs, SamplePart, at_each_length, has_batch},
};

/// A plan for one batch size and one length of sequences.
pub(super) struct Plan {
    pub(super) batch_size: usize,
    /// The number of the length.
    pub(super) bucket: usize,
    pub(super) sample_bytes: usize,
    pub(super) inputs: Vec<PlanInput>,
    /// Elements of each output for a sample.
    pub(super) rows: Vec<usize>,
    pub(super) runnable: Arc<TypedRunnableModel>,
}

/// Returns one plan per length of sequences and requested batch size, both in ascending order.
pub(super) fn plans(request: &LoadRequest<'_>) -> Result<Vec<Plan>, EngineError> {
    model_file::checked_hash(request)?;
    let (onnx, inputs) = read(request)?;
    let fixed = sample_part::fixed_batch(&inputs).map_err(|reason| unfit(request, reason))?;
    let sizes = batch_sizes(request, fixed);
    let full = request.benchmark.model.sequence_length();
    let inputs =
        at_each_length(inputs, full, request.sequences.lengths()).map_err(|reason| unfit(request, reason))?;
    let mut plans = Vec::new();
    for (bucket, inputs) in inputs.into_iter().enumerate() {
        for &batch_size in &sizes {
            plans.push(plan(request, &onnx, &inputs, batch_size, bucket)?);
        }
    }
    Ok(plans)
}

fn plan(
    request: &LoadRequest<'_>,
    onnx: &OnnxNetwork,
    inputs: &[PlanInput],
    batch_size: usize,
    bucket: usize,
) -> Result<Plan, EngineError> {
    let model = fix_batch_size(onnx, batch_size, inputs).map_err(|source| refused(request, source.into()))?;
    let is_single = inputs.iter().any(|input| input.part.fixed_batch == Some(1));
    let rows = check_outputs(&model, batch_size, is_single, request)?;
    if let Some(&length) = request.sequences.lengths().get(bucket) {
        let datum = model
            .output_fact(0)
            .map_err(|source| refused(request, source.into()))?
            .datum_type;
        // Stacked outputs have one type and shape.
        sequences::check_logits(rows[0], datum, length).map_err(|reason| unfit(request, reason))?;
    }
    let runnable = model
        .into_runnable()
        .map_err(|source| refused(request, source.into()))?;
    Ok(Plan {
        batch_size,
        bucket,
        sample_bytes: request.benchmark.model.sample_bytes().unwrap_or(0),
        inputs: inputs.to_vec(),
        rows,
        runnable,
    })
}

/// Returns the error that tract rejects the model.
pub(super) fn refused(request: &LoadRequest<'_>, source: Box<dyn Error + Send + Sync>) -> EngineError {
    EngineError::ModelRefused {
        engine: EngineKind::Tract,
        file: request.model_file.clone(),
        source,
    }
}

fn unfit(request: &LoadRequest<'_>, reason: impl Into<ModelMismatch>) -> EngineError {
    EngineError::ModelUnfit {
        file: request.model_file.clone(),
        benchmark: request.benchmark.name.clone(),
        reason: reason.into(),
    }
}

/// Reads the model, selects the outputs for the answer, and checks that the inputs accept the samples. Returns the
/// inputs in the network's order.
fn read(request: &LoadRequest<'_>) -> Result<(OnnxNetwork, Vec<PlanInput>), EngineError> {
    let refuse = |source: tract_onnx::prelude::TractError| refused(request, source.into());
    let mut network = OnnxNetwork::read(&request.model_file).map_err(refuse)?;
    let onnx = &mut network.model;
    let inputs = onnx.input_outlets().map_err(refuse)?.to_vec();
    let outputs = onnx.output_outlets().map_err(refuse)?.to_vec();
    let model = &request.benchmark.model;
    let sample_inputs =
        SampleInputs::of(model, inputs.len(), outputs.len()).map_err(|reason| unfit(request, reason))?;
    let names: Vec<&str> = outputs
        .iter()
        .map(|&outlet| onnx.outlet_label(outlet).unwrap_or_default())
        .collect();
    let taken = answer_outputs::places(model, &names).map_err(|reason| unfit(request, reason))?;
    let taken: Vec<_> = taken.into_iter().map(|place| outputs[place]).collect();
    onnx.select_output_outlets(&taken).map_err(refuse)?;
    let mut taken = Vec::new();
    for (number, outlet) in inputs.iter().enumerate() {
        let declared = onnx.input_fact(number).map_err(refuse)?;
        let name = &onnx.node(outlet.node).name;
        let (input, bytes) = sample_inputs
            .named(name)
            .map_err(|reason| unfit(request, reason))?;
        let Some(has_batch) = fits(declared, input) else {
            let dims = std::iter::once("N".to_owned()).chain(input.shape.iter().map(usize::to_string));
            let reason = format!(
                "it accepts {}, but its samples are {} {}",
                describe(declared),
                dtype_name(datum_type(input.dtype)),
                shape_name(dims)
            );
            return Err(unfit(request, reason));
        };
        if !input.layout.is_linear() {
            let reason = format!("tract needs samples in linear layout, but they are {input}");
            return Err(unfit(request, reason));
        }
        let datum = declared_type(declared, input);
        taken.push(PlanInput {
            datum,
            is_widened: datum != datum_type(input.dtype),
            part: SamplePart::new(bytes.clone(), input.shape, &dims(declared), has_batch),
        });
    }
    Ok((network, taken))
}

/// Returns the type that the network declares, or the samples' type if it declares none.
fn declared_type(declared: &InferenceFact, sample_input: &ModelInput<'_>) -> DatumType {
    let own = declared.datum_type.concretize();
    own.unwrap_or_else(|| datum_type(sample_input.dtype))
}

/// Returns the declared dimensions of an input; a free one is `None`.
fn dims(input: &InferenceFact) -> Vec<Option<usize>> {
    let fixed = |dim: &GenericFactoid<TDim>| dim.concretize().and_then(|dim| dim.to_usize().ok());
    input.shape.dims().map(fixed).collect()
}

/// Returns whether a declared input that accepts the benchmark's samples has a dimension for the batch. `None` if it does not accept them.
fn fits(input: &InferenceFact, sample_input: &ModelInput<'_>) -> Option<bool> {
    let declared_type = declared_type(input, sample_input);
    let is_wider = (sample_input.dtype, declared_type) == (Dtype::Int32, DatumType::I64);
    let right_type = declared_type == datum_type(sample_input.dtype) || is_wider;
    has_batch(&dims(input), input.shape.is_open(), sample_input.shape).filter(|_| right_type)
}

/// Returns the batch sizes to create plans for, ascending and unique: the requested sizes, or the model's fixed size. Warns if that is smaller.
fn batch_sizes(request: &LoadRequest<'_>, fixed: Option<usize>) -> Vec<usize> {
    let mut sizes = request.batch_sizes.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    let Some(fixed) = fixed else {
        return sizes;
    };
    if let Some(&largest) = sizes.last().filter(|&&largest| largest > fixed) {
        fixed_batch::warn(&request.model_file, fixed, largest);
    }
    vec![fixed]
}

/// Returns the optimised model for one batch size.
fn fix_batch_size(onnx: &OnnxNetwork, batch_size: usize, inputs: &[PlanInput]) -> TractResult<TypedModel> {
    let inputs = inputs.iter().map(|input| {
        let shape = input.batch_shape(batch_size);
        InferenceFact::dt_shape(input.datum, &*shape)
    });
    onnx.typed(inputs)?.into_optimized()
}

/// Checks that outputs have one row per sample, and that stacked outputs have the same type and shape. Returns the elements of each row.
/// Those of a network that takes one sample at a time may lack the batch.
fn check_outputs(
    model: &TypedModel,
    batch_size: usize,
    is_single: bool,
    request: &LoadRequest<'_>,
) -> Result<Vec<usize>, EngineError> {
    let refuse = |source: tract_onnx::prelude::TractError| refused(request, source.into());
    let response = request.benchmark.model.response;
    let mut rows = Vec::new();
    let first = model.output_fact(0).map_err(refuse)?;
    for number in 0..model.output_outlets().map_err(refuse)?.len() {
        let output = model.output_fact(number).map_err(refuse)?;
        check_output(output, batch_size, is_single, request)?;
        let shape = output.shape.as_concrete().unwrap_or_default();
        rows.push(shape.iter().product::<usize>() / batch_size.max(1));
        if response == Response::Detections {
            if output.datum_type != DatumType::F32 {
                let reason = format!(
                    "detections are read from float32, but an output is {}",
                    dtype_name(output.datum_type)
                );
                return Err(unfit(request, reason));
            }
        } else if response != Response::AllOutputs
            && (output.datum_type != first.datum_type || output.shape != first.shape)
        {
            let reason = "its outputs have different types or shapes, and cannot be stacked".to_owned();
            return Err(unfit(request, reason));
        }
    }
    decoder(request, &rows)?;
    Ok(rows)
}

/// Returns the decoder of detections for outputs with these rows, if the benchmark has such a response.
pub(super) fn decoder(
    request: &LoadRequest<'_>,
    rows: &[usize],
) -> Result<Option<DetectionDecoder>, EngineError> {
    DetectionDecoder::of(&request.benchmark.model, rows, &request.image_sizes)
        .map_err(|reason| unfit(request, reason))
}

/// Checks that an output has one row per sample. An argmax needs several scores or one integer per sample.
fn check_output(
    output: &TypedFact,
    batch_size: usize,
    is_single: bool,
    request: &LoadRequest<'_>,
) -> Result<(), EngineError> {
    let Some(shape) = output.shape.as_concrete() else {
        return Err(unfit(
            request,
            format!("its output has no fixed shape for a batch of {batch_size}"),
        ));
    };
    let named = || {
        format!(
            "{} {}",
            dtype_name(output.datum_type),
            shape_name(shape.iter().map(usize::to_string))
        )
    };
    if !is_single && shape.first() != Some(&batch_size) {
        return Err(unfit(
            request,
            format!(
                "its output for a batch of {batch_size} is {}, not one row per sample",
                named()
            ),
        ));
    }
    let row = shape.iter().product::<usize>() / batch_size.max(1);
    let is_class = row == 1 && matches!(output.datum_type, DatumType::I32 | DatumType::I64);
    if request.benchmark.model.response == Response::ArgmaxInt32 && row < 2 && !is_class {
        let reason = format!("its output is {}, which has no largest value", named());
        return Err(unfit(request, reason));
    }
    Ok(())
}

const fn datum_type(dtype: Dtype) -> DatumType {
    match dtype {
        Dtype::Float32 => DatumType::F32,
        Dtype::Float16 => DatumType::F16,
        Dtype::Int8 => DatumType::I8,
        Dtype::Int32 => DatumType::I32,
        Dtype::Int64 => DatumType::I64,
        Dtype::Uint8 => DatumType::U8,
        Dtype::Float64 => DatumType::F64,
        Dtype::Bool => DatumType::Bool,
    }
}

/// Formats a declared input as `float32 [N, 1, 8, 8]`, with `?` for free dimensions.
fn describe(input: &InferenceFact) -> String {
    let dtype = input
        .datum_type
        .concretize()
        .map_or_else(|| "any type".to_owned(), dtype_name);
    let dims = input
        .shape
        .dims()
        .map(|dim| {
            dim.concretize()
                .map_or_else(|| "?".to_owned(), |dim| dim.to_string())
        })
        .chain(input.shape.is_open().then(|| "...".to_owned()));
    format!("{dtype} {}", shape_name(dims))
}

fn shape_name(dims: impl Iterator<Item = String>) -> String {
    format!("[{}]", dims.collect::<Vec<_>>().join(", "))
}

/// Returns NumPy's name of a type if there is one, otherwise tract's name.
fn dtype_name(dtype: DatumType) -> String {
    match dtype {
        DatumType::F64 => "float64".to_owned(),
        DatumType::F32 => "float32".to_owned(),
        DatumType::F16 => "float16".to_owned(),
        DatumType::I8 => "int8".to_owned(),
        DatumType::U8 => "uint8".to_owned(),
        DatumType::I32 => "int32".to_owned(),
        DatumType::I64 => "int64".to_owned(),
        DatumType::Bool => "bool".to_owned(),
        other => format!("{other:?}"),
    }
}
