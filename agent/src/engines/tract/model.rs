//! From an ONNX file to plans: reads the model, holds its input and output against the benchmark, and fixes the batch
//! size. Runs nothing.

use std::error::Error;

use regatta_rules::{
    benchmark::{Dtype, Model, Response},
    documents::EngineKind,
};
use tract_onnx::{
    prelude::{
        DatumType, Framework, InferenceModel, InferenceModelExt, IntoRunnable, Tensor, TractResult,
        TypedModel,
    },
    tract_core::internal::DimLike,
    tract_hir::infer::{Factoid, InferenceFact},
};

use super::Plan;
use crate::engines::{EngineError, LoadRequest, model_file};

/// One plan per batch size that is asked for, ascending.
pub(super) fn plans(request: &LoadRequest<'_>) -> Result<Vec<Plan>, EngineError> {
    model_file::checked_hash(request)?;
    let onnx = read(request)?;
    let sizes = batch_sizes(request, &onnx)?;
    let sample_bytes = sample_bytes(&request.benchmark.model);
    sizes
        .into_iter()
        .map(|batch_size| {
            let model = fix_batch_size(&onnx, batch_size, request)
                .map_err(|source| refused(request, source.into()))?;
            check_output(&model, batch_size, request)?;
            let runnable = model
                .into_runnable()
                .map_err(|source| refused(request, source.into()))?;
            Ok(Plan {
                batch_size,
                sample_bytes,
                runnable,
            })
        })
        .collect()
}

/// An empty input tensor for a batch.
pub(super) fn input_tensor(batch_size: usize, model: &Model) -> TractResult<Tensor> {
    Tensor::zero_dt(datum_type(model.input_dtype), &batch_shape(batch_size, model))
}

/// tract does not take the model, for this reason.
pub(super) fn refused(request: &LoadRequest<'_>, source: Box<dyn Error + Send + Sync>) -> EngineError {
    EngineError::ModelRefused {
        engine: EngineKind::Tract,
        file: request.model_file.clone(),
        source,
    }
}

fn unfit(request: &LoadRequest<'_>, reason: String) -> EngineError {
    EngineError::ModelUnfit {
        file: request.model_file.clone(),
        benchmark: request.benchmark.name.clone(),
        reason,
    }
}

/// Reads the model with its first output only, and checks that its one input takes the samples.
fn read(request: &LoadRequest<'_>) -> Result<InferenceModel, EngineError> {
    let refuse = |source: tract_onnx::prelude::TractError| refused(request, source.into());
    let mut onnx = tract_onnx::onnx()
        .model_for_path(&request.model_file)
        .map_err(refuse)?;
    let inputs = onnx.input_outlets().map_err(refuse)?.len();
    let first_output = onnx.output_outlets().map_err(refuse)?.first().copied();
    let Some(first_output) = first_output.filter(|_| inputs == 1) else {
        let outputs = onnx.output_outlets().map_err(refuse)?.len();
        let reason =
            format!("it has {inputs} inputs and {outputs} outputs; one input and an output are needed");
        return Err(unfit(request, reason));
    };
    onnx.select_output_outlets(&[first_output]).map_err(refuse)?;
    let input = onnx.input_fact(0).map_err(refuse)?;
    if fits(input, &request.benchmark.model) {
        return Ok(onnx);
    }
    let model = &request.benchmark.model;
    let reason = format!(
        "it takes {}, but its samples come as {} {}",
        describe(input),
        dtype_name(datum_type(model.input_dtype)),
        shape_name(std::iter::once("N".to_owned()).chain(model.input_shape.iter().map(usize::to_string)))
    );
    Err(unfit(request, reason))
}

/// Whether the declared input takes batches of the benchmark's samples, in every dimension but the first.
fn fits(input: &InferenceFact, model: &Model) -> bool {
    let right_type = input
        .datum_type
        .concretize()
        .is_none_or(|declared| declared == datum_type(model.input_dtype));
    let declared: Vec<_> = input.shape.dims().collect();
    let right_rank = declared.len() == model.input_shape.len() + 1;
    let right_rank = right_rank || (input.shape.is_open() && declared.len() <= model.input_shape.len());
    let right_dims = declared
        .iter()
        .skip(1)
        .zip(&model.input_shape)
        .all(|(declared, &wanted)| {
            declared
                .concretize()
                .and_then(|dim| dim.to_usize().ok())
                .is_none_or(|dim| dim == wanted)
        });
    right_type && right_rank && right_dims
}

/// The sizes to make plans for, ascending, without doubles: those asked for, or the one that the model is bound to.
fn batch_sizes(request: &LoadRequest<'_>, onnx: &InferenceModel) -> Result<Vec<usize>, EngineError> {
    let mut sizes = request.batch_sizes.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    let input = onnx
        .input_fact(0)
        .map_err(|source| refused(request, source.into()))?;
    let bound = input
        .shape
        .dim(0)
        .and_then(|dim| dim.concretize())
        .and_then(|dim| dim.to_usize().ok());
    match (bound, sizes.last()) {
        (Some(bound), Some(&largest)) if request.batch_size_is_wish && largest > bound => {
            let reason = format!("its batch dimension is fixed at {bound}, but batch_size is {largest}");
            Err(unfit(request, reason))
        }
        (Some(bound), _) => Ok(vec![bound]),
        (None, _) => Ok(sizes),
    }
}

/// The model for one batch size, optimised.
fn fix_batch_size(
    onnx: &InferenceModel,
    batch_size: usize,
    request: &LoadRequest<'_>,
) -> TractResult<TypedModel> {
    let model = &request.benchmark.model;
    let shape = batch_shape(batch_size, model);
    onnx.clone()
        .with_input_fact(0, InferenceFact::dt_shape(datum_type(model.input_dtype), &*shape))?
        .into_optimized()
}

/// The first output must have a row per sample, and more than one number in it where the largest is looked for.
fn check_output(model: &TypedModel, batch_size: usize, request: &LoadRequest<'_>) -> Result<(), EngineError> {
    let output = model
        .output_fact(0)
        .map_err(|source| refused(request, source.into()))?;
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
    if shape.first() != Some(&batch_size) {
        return Err(unfit(
            request,
            format!(
                "its output for a batch of {batch_size} is {}, not a row per sample",
                named()
            ),
        ));
    }
    let row: usize = shape.iter().skip(1).product();
    if request.benchmark.model.response == Response::ArgmaxInt32 && row < 2 {
        let reason = format!(
            "its output is {}, which leaves no largest value to look for",
            named()
        );
        return Err(unfit(request, reason));
    }
    Ok(())
}

fn batch_shape(batch_size: usize, model: &Model) -> Vec<usize> {
    std::iter::once(batch_size)
        .chain(model.input_shape.iter().copied())
        .collect()
}

fn sample_bytes(model: &Model) -> usize {
    model.input_shape.iter().product::<usize>() * model.input_dtype.size()
}

const fn datum_type(dtype: Dtype) -> DatumType {
    match dtype {
        Dtype::Float32 => DatumType::F32,
        Dtype::Float16 => DatumType::F16,
        Dtype::Int8 => DatumType::I8,
        Dtype::Int32 => DatumType::I32,
        Dtype::Int64 => DatumType::I64,
    }
}

/// A declared input as `float32 [N, 1, 8, 8]`, with `?` for what the model leaves open.
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

/// The field's name of a type where it has one, tract's own otherwise.
fn dtype_name(dtype: DatumType) -> String {
    match dtype {
        DatumType::F64 => "float64".to_owned(),
        DatumType::F32 => "float32".to_owned(),
        DatumType::F16 => "float16".to_owned(),
        DatumType::I8 => "int8".to_owned(),
        DatumType::U8 => "uint8".to_owned(),
        DatumType::I32 => "int32".to_owned(),
        DatumType::I64 => "int64".to_owned(),
        other => format!("{other:?}"),
    }
}
