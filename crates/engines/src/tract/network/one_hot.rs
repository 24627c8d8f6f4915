//! `OneHot` with places beyond its depth, which have no value: tract panics for them.

use tract_onnx::{
    prelude::{TVec, Tensor, TractResult, TypedFact},
    tract_core::{
        internal::{AxesMapping, EvalContext, EvalOp, Op, StaticName, TypedOp},
        op_as_typed_op, op_out_of_plan,
        ops::array::OneHot,
        value::{IntoTValue as _, TValue},
    },
};

/// An operator with one place more than it returns, for those beyond its depth.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BoundedOneHot {
    inner: OneHot,
}

/// Returns the operator that takes the place of tract's.
pub(super) fn exact(op: &dyn TypedOp) -> Option<Box<dyn TypedOp>> {
    let inner = op.downcast_ref::<OneHot>()?.clone();
    Some(Box::new(BoundedOneHot { inner }))
}

impl EvalOp for BoundedOneHot {
    op_out_of_plan!();

    fn eval(&self, context: &EvalContext<'_>, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let depth = self.inner.dim;
        let limit = depth as i64;
        let places = inputs[0].cast_to::<i64>()?;
        let places: Vec<i64> = places
            .try_as_plain_ram()?
            .as_slice::<i64>()?
            .iter()
            .map(|&place| {
                if place < 0 {
                    place.saturating_add(limit)
                } else {
                    place
                }
            })
            .map(|place| if (0..limit).contains(&place) { place } else { limit })
            .collect();
        let places = Tensor::from_shape(inputs[0].shape(), &places)?;
        let larger = OneHot {
            dim: depth + 1,
            ..self.inner.clone()
        };
        let made = larger.eval(context, [places.into_tvalue()].into_iter().collect())?;
        let made = made[0].slice(self.inner.axis, 0, depth)?;
        Ok([made.into_tvalue()].into_iter().collect())
    }
}

impl Op for BoundedOneHot {
    fn name(&self) -> StaticName {
        "BoundedOneHot".into()
    }

    op_as_typed_op!();
}

impl TypedOp for BoundedOneHot {
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
}
