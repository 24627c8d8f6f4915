//! The largest of values that are all minus infinity, or of none, for which tract's operators return the lowest finite number, and the
//! smallest of values that are all infinite. Does not change what they return for other values.

use std::fmt;

use tract_onnx::{
    prelude::{DatumType, TVec, Tensor, TractResult, TypedFact, TypedModel},
    tract_core::{
        internal::{
            AxesMapping, AxisChangeConsequence, AxisOp, EvalContext, EvalOp, InOut, Op, StaticName,
            TypedModelPatch, TypedNode, TypedOp,
        },
        op_as_typed_op, op_out_of_plan,
        ops::{
            cnn::{MaxPool, OptMaxPool},
            nn::{Reduce, Reducer},
        },
        value::{IntoTValue as _, TValue},
    },
};

/// What an operator returns for a set of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Returned {
    /// The extreme value, and perhaps its place.
    Value,
    /// The place of the extreme value only.
    Place,
}

/// An operator of tract whose extremes of infinite values are put right.
#[derive(Clone)]
struct ExactExtreme {
    inner: Box<dyn TypedOp>,
    returned: Returned,
    is_maximum: bool,
}

/// Returns the operator that takes the place of an operator of tract with extremes.
pub(super) fn exact(op: &dyn TypedOp) -> Option<Box<dyn TypedOp>> {
    let exact = of_reduction(op).or_else(|| of_pool(op))?;
    Some(Box::new(exact))
}

/// Makes the operators of a change of the optimiser exact.
fn exact_patch(mut patch: TypedModelPatch) -> TypedModelPatch {
    for node in &mut patch.model.nodes {
        if let Some(op) = exact(node.op.as_ref()) {
            node.op = op;
        }
    }
    patch
}

fn of_reduction(op: &dyn TypedOp) -> Option<ExactExtreme> {
    let reduce = op.downcast_ref::<Reduce>()?;
    let (returned, is_maximum) = match reduce.reducer {
        Reducer::Max => (Returned::Value, true),
        Reducer::Min => (Returned::Value, false),
        Reducer::ArgMax(_) => (Returned::Place, true),
        Reducer::ArgMin(_) => (Returned::Place, false),
        _ => return None,
    };
    Some(ExactExtreme {
        inner: Box::new(reduce.clone()),
        returned,
        is_maximum,
    })
}

fn of_pool(op: &dyn TypedOp) -> Option<ExactExtreme> {
    let optimised = op.downcast_ref::<OptMaxPool>();
    let inner: Box<dyn TypedOp> = match (optimised, op.downcast_ref::<MaxPool>()) {
        (Some(pool), _) => Box::new(pool.clone()),
        (None, Some(pool)) => Box::new(pool.clone()),
        (None, None) => return None,
    };
    Some(ExactExtreme {
        inner,
        returned: Returned::Value,
        is_maximum: true,
    })
}

impl ExactExtreme {
    /// Returns tract's extremes of values.
    fn extremes(
        &self,
        context: &EvalContext<'_>,
        input: TValue,
        outputs: &TVec<TValue>,
    ) -> TractResult<TValue> {
        let reducer = if self.is_maximum {
            Reducer::Max
        } else {
            Reducer::Min
        };
        match (self.returned, self.inner.downcast_ref::<Reduce>()) {
            (Returned::Place, Some(reduce)) => {
                let reduce = Reduce {
                    reducer,
                    ..reduce.clone()
                };
                Ok(reduce.eval(context, [input].into_iter().collect())?.remove(0))
            }
            _ => Ok(outputs[0].clone()),
        }
    }

    /// Returns 0 for infinite values, and for others the number beyond it.
    fn marks(&self, input: &Tensor) -> TractResult<Tensor> {
        let (infinite, mark) = if self.is_maximum {
            (f64::NEG_INFINITY, 1.0)
        } else {
            (f64::INFINITY, -1.0)
        };
        let marks: Vec<f64> = numbers(input)?
            .into_iter()
            .map(|value| if value == infinite { 0.0 } else { mark })
            .collect();
        let marks = Tensor::from_shape(input.shape(), &marks)?;
        Ok(marks.cast_to_dt(input.datum_type())?.into_owned())
    }

    /// Returns the outputs with those of infinite values put right. A set of marks without anything finite, or without anything, has no mark.
    fn corrected(
        &self,
        outputs: TVec<TValue>,
        extremes: &TValue,
        marked: TVec<TValue>,
        marked_extremes: &TValue,
    ) -> TractResult<TVec<TValue>> {
        let datum = extremes.datum_type();
        let limit = self.limit(datum);
        let is_limit: Vec<bool> = numbers(extremes)?
            .into_iter()
            .map(|value| Some(value) == limit)
            .collect();
        let has_mark: Vec<bool> = numbers(marked_extremes)?
            .into_iter()
            .map(|value| {
                if self.is_maximum {
                    value > 0.5
                } else {
                    value < -0.5
                }
            })
            .collect();
        let infinite = if self.is_maximum {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        };
        let pairs = outputs.into_iter().zip(marked).enumerate();
        pairs
            .map(|(number, (output, marked))| {
                let is_place = number > 0 || self.returned == Returned::Place;
                let (datum, shape) = (output.datum_type(), output.shape().to_vec());
                let own = numbers(&output)?.into_iter().zip(numbers(&marked)?).enumerate();
                let right: Vec<f64> = own
                    .map(
                        |(at, (own, of_marks))| match (is_limit[at], is_place, has_mark[at]) {
                            (true, true, _) => of_marks,
                            (true, false, false) => infinite,
                            _ => own,
                        },
                    )
                    .collect();
                let right = Tensor::from_shape(&shape, &right)?;
                Ok(right.cast_to_dt(datum)?.into_owned().into_tvalue())
            })
            .collect()
    }

    /// Returns the finite number with which tract begins. `None` for types without infinity.
    fn limit(&self, datum: DatumType) -> Option<f64> {
        let largest = match datum {
            DatumType::F16 => half::f16::MAX.to_f64(),
            DatumType::F32 => f64::from(f32::MAX),
            DatumType::F64 => f64::MAX,
            _ => return None,
        };
        Some(if self.is_maximum { -largest } else { largest })
    }
}

/// Returns the values of a tensor as 64-bit floats, which are exact for places and all floats.
fn numbers(tensor: &Tensor) -> TractResult<Vec<f64>> {
    let values = tensor.cast_to::<f64>()?;
    Ok(values.try_as_plain_ram()?.as_slice::<f64>()?.to_vec())
}

/// Returns whether a tensor has a number, quickly for 32-bit floats.
fn contains(tensor: &Tensor, number: f64) -> TractResult<bool> {
    if tensor.datum_type() == DatumType::F32 {
        let values = tensor.try_as_plain_ram()?;
        return Ok(values.as_slice::<f32>()?.contains(&(number as f32)));
    }
    Ok(numbers(tensor)?.contains(&number))
}

impl EvalOp for ExactExtreme {
    op_out_of_plan!();

    fn eval(&self, context: &EvalContext<'_>, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let input = inputs[0].clone();
        let outputs = self.inner.eval(context, inputs)?;
        let Some(limit) = self.limit(input.datum_type()) else {
            return Ok(outputs);
        };
        let extremes = self.extremes(context, input.clone(), &outputs)?;
        if !contains(&extremes, limit)? {
            return Ok(outputs);
        }
        let marks = self.marks(&input)?.into_tvalue();
        let marked = self.inner.eval(context, [marks.clone()].into_iter().collect())?;
        let marked_extremes = self.extremes(context, marks, &marked)?;
        self.corrected(outputs, &extremes, marked, &marked_extremes)
    }
}

impl Op for ExactExtreme {
    fn name(&self) -> StaticName {
        format!("Exact{}", self.inner.name()).into()
    }

    op_as_typed_op!();
}

impl TypedOp for ExactExtreme {
    fn as_op(&self) -> &dyn Op {
        self
    }

    fn as_op_mut(&mut self) -> &mut dyn Op {
        self
    }

    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        self.inner.output_facts(inputs)
    }

    fn axes_mapping(&self, inputs: &[&TypedFact], outputs: &[&TypedFact]) -> TractResult<AxesMapping> {
        self.inner.axes_mapping(inputs, outputs)
    }

    fn declutter(&self, model: &TypedModel, node: &TypedNode) -> TractResult<Option<TypedModelPatch>> {
        Ok(self.inner.declutter(model, node)?.map(exact_patch))
    }

    fn codegen(&self, model: &TypedModel, node: &TypedNode) -> TractResult<Option<TypedModelPatch>> {
        Ok(self.inner.codegen(model, node)?.map(exact_patch))
    }

    fn change_axes(
        &self,
        model: &TypedModel,
        node: &TypedNode,
        io: InOut,
        change: &AxisOp,
    ) -> TractResult<Option<AxisChangeConsequence>> {
        let consequence = self.inner.change_axes(model, node, io, change)?;
        Ok(consequence.map(|consequence| AxisChangeConsequence {
            substitute_op: consequence
                .substitute_op
                .map(|op| exact(op.as_ref()).unwrap_or(op)),
            ..consequence
        }))
    }
}

impl fmt::Debug for ExactExtreme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exact({:?})", self.inner)
    }
}

impl PartialEq for ExactExtreme {
    /// tract compares operators to find equal ones, of which it keeps one.
    fn eq(&self, _other: &Self) -> bool {
        false
    }
}

impl Eq for ExactExtreme {}
