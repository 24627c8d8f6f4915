//! What the inputs of a network take of a sample, for engines that read ONNX files: bytes, shape, batch, and the tokens of shorter sequences.

use std::ops::Range;

use regatta_types::benchmark::{Model, ModelInput};

use crate::ModelMismatch;

/// The part of a sample that an input of a network takes.
#[derive(Debug, Clone)]
pub(crate) struct SamplePart {
    /// The byte range within a sample.
    pub(crate) bytes: Range<usize>,
    /// The shape of a sample.
    pub(crate) shape: Vec<usize>,
    /// Whether the input has a dimension for the batch before those of a sample.
    pub(crate) has_batch: bool,
    /// The batch, if the network fixes it; 1 without a dimension for it.
    pub(crate) fixed_batch: Option<usize>,
    /// The first dimension after the batch, if the network fixes it.
    fixed_length: Option<usize>,
}

impl SamplePart {
    /// Returns the part of an input with these dimensions, of which free ones are `None`, and with [`has_batch`].
    pub(crate) fn new(bytes: Range<usize>, shape: &[usize], dims: &[Option<usize>], has_batch: bool) -> Self {
        let fixed = |place: usize| dims.get(place).copied().flatten();
        Self {
            bytes,
            shape: shape.to_vec(),
            has_batch,
            fixed_batch: if has_batch { fixed(0) } else { Some(1) },
            fixed_length: fixed(usize::from(has_batch)),
        }
    }

    /// Shortens the part to the first `length` of `full` tokens. A part of another shape stays as it is.
    fn shorten(&mut self, full: usize, length: usize) {
        if self.shape == [full] {
            let token = self.bytes.len() / full;
            self.shape = vec![length];
            self.bytes = self.bytes.start..self.bytes.start + length * token;
        }
    }
}

/// Returns the inputs of each length: only the first tokens of each sample, in the inputs with `full` tokens. Without lengths, the inputs as
/// they are.
///
/// # Errors
/// The network declares another length.
pub(crate) fn at_each_length<T: Clone + AsRef<SamplePart> + AsMut<SamplePart>>(
    inputs: Vec<T>,
    full: Option<usize>,
    lengths: &[usize],
) -> Result<Vec<Vec<T>>, ModelMismatch> {
    let Some(full) = full.filter(|_| !lengths.is_empty()) else {
        return Ok(vec![inputs]);
    };
    let mut parts = inputs.iter().map(AsRef::as_ref);
    let fixed = parts.find_map(|part| part.fixed_length.filter(|_| part.shape == [full]));
    if let Some(fixed) = fixed {
        return Err(format!(
            "its sequences have a fixed length of {fixed}; hint: leave out sequence_lengths"
        )
        .into());
    }
    let of_length = |&length: &usize| {
        let mut inputs = inputs.clone();
        for input in &mut inputs {
            input.as_mut().shorten(full, length);
        }
        inputs
    };
    Ok(lengths.iter().map(of_length).collect())
}

/// Returns the batch that the inputs of a network fix together. `None` if all of them have a free one.
///
/// # Errors
/// Inputs fix different batches.
pub(crate) fn fixed_batch<T: AsRef<SamplePart>>(inputs: &[T]) -> Result<Option<usize>, ModelMismatch> {
    let mut fixed = inputs.iter().filter_map(|input| input.as_ref().fixed_batch);
    let first = fixed.next();
    match fixed.find(|other| Some(*other) != first) {
        Some(other) => {
            let first = first.unwrap_or(other);
            Err(format!("its inputs have the batches {first} and {other}; export it with one batch").into())
        }
        None => Ok(first),
    }
}

/// The inputs of a benchmark's samples with their byte ranges, by which a network's inputs are found.
pub(crate) struct SampleInputs<'a>(Vec<(ModelInput<'a>, Range<usize>)>);

impl<'a> SampleInputs<'a> {
    /// Returns the inputs of a model for a network with this number of inputs and outputs.
    ///
    /// # Errors
    /// The numbers of inputs differ, or the network has no output.
    pub(crate) fn of(model: &'a Model, inputs: usize, outputs: usize) -> Result<Self, ModelMismatch> {
        let ranges = model.inputs().scan(0, |end, input| {
            let begin = *end;
            *end += input.bytes().unwrap_or(0);
            Some((input, begin..*end))
        });
        let found = Self(ranges.collect());
        if inputs == found.0.len() && outputs > 0 {
            return Ok(found);
        }
        let needed = match found.0.len() {
            1 => "one input".to_owned(),
            needed => format!("{needed} inputs"),
        };
        Err(
            format!("it has {inputs} inputs and {outputs} outputs; {needed} and one output are needed")
                .into(),
        )
    }

    /// Returns the input of a name. An only input of a benchmark may have none.
    ///
    /// # Errors
    /// Samples have no such input.
    pub(crate) fn named(&self, name: &str) -> Result<&(ModelInput<'a>, Range<usize>), ModelMismatch> {
        let named = self
            .0
            .iter()
            .find(|(input, _)| input.name.is_none_or(|own| own == name));
        named.ok_or_else(|| {
            let names: Vec<_> = self.0.iter().filter_map(|(input, _)| input.name).collect();
            format!("it has an input `{name}`, but a sample has {}", names.join(", ")).into()
        })
    }
}

/// Returns whether an input has a dimension for the batch before those of a sample. Without one, it takes one sample at a time. A free
/// dimension is `None`; `is_open` says that there may be more of them. `None` if the input does not take samples of this shape.
pub(crate) fn has_batch(declared: &[Option<usize>], is_open: bool, sample: &[usize]) -> Option<bool> {
    let has_batch = is_open || declared.len() > sample.len();
    let own = declared.get(usize::from(has_batch)..).unwrap_or_default();
    let right_rank = own.len() == sample.len() || (is_open && own.len() < sample.len());
    let mut pairs = own.iter().zip(sample);
    let right_dims = pairs.all(|(declared, dim)| declared.is_none_or(|declared| declared == *dim));
    (right_rank && right_dims).then_some(has_batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(dims: &[Option<usize>], sample: &[usize]) -> SamplePart {
        let has_batch = has_batch(dims, false, sample).unwrap();
        SamplePart::new(0..sample.iter().product(), sample, dims, has_batch)
    }

    impl AsRef<Self> for SamplePart {
        fn as_ref(&self) -> &Self {
            self
        }
    }

    impl AsMut<Self> for SamplePart {
        fn as_mut(&mut self) -> &mut Self {
            self
        }
    }

    #[test]
    fn inputs_fix_one_batch() {
        let (free, four, single) = (
            part(&[None, Some(3)], &[3]),
            part(&[Some(4), Some(3)], &[3]),
            part(&[], &[]),
        );
        assert_eq!(fixed_batch(std::slice::from_ref(&free)).unwrap(), None);
        assert_eq!(fixed_batch(&[free.clone(), four.clone()]).unwrap(), Some(4));
        assert_eq!(fixed_batch(&[single.clone(), free]).unwrap(), Some(1));
        let error = fixed_batch(&[four, single]).unwrap_err().to_string();
        assert_eq!(
            error,
            "its inputs have the batches 4 and 1; export it with one batch"
        );
    }

    #[test]
    fn sequences_of_a_fixed_length_are_not_shortened() {
        let of = |dims: &[Option<usize>]| at_each_length(vec![part(dims, &[8])], Some(8), &[4, 8]);
        let lengths = of(&[None, None]).unwrap();
        assert_eq!(
            (lengths[0][0].bytes.clone(), lengths[1][0].bytes.clone()),
            (0..4, 0..8)
        );
        for fixed in [&[None, Some(8)][..], &[Some(8)]] {
            let error = of(fixed).unwrap_err().to_string();
            assert!(error.contains("a fixed length of 8"), "{error}");
        }
    }

    #[test]
    fn a_batch_is_the_dimension_before_those_of_a_sample() {
        let of = |declared: &[Option<usize>], sample: &[usize]| has_batch(declared, false, sample);
        assert_eq!(of(&[None, Some(3)], &[3]), Some(true));
        assert_eq!(of(&[Some(1), None], &[3]), Some(true));
        assert_eq!(of(&[Some(3)], &[3]), Some(false));
        assert_eq!(of(&[], &[]), Some(false));
        assert_eq!(of(&[None], &[]), Some(true));
        assert_eq!(of(&[None, Some(4)], &[3]), None);
        assert_eq!(of(&[None, Some(1), Some(3)], &[3]), None);
        assert_eq!(has_batch(&[], true, &[3]), Some(true));
        assert_eq!(has_batch(&[None, Some(3)], true, &[3]), Some(true));
    }
}
