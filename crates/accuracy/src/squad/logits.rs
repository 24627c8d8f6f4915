//! The logits of a response: for each token, whether an answer begins and ends there.

use half::f16;

use crate::LabelType;

/// How many of the highest logits are combined.
const BEST: usize = 20;
/// The logit that the reference assumes for tokens missing from a response.
const PADDING: f64 = -10000.0;

/// A position in a sample, with its logit.
pub(super) type Candidate = (usize, f64);

/// The highest logits of a response.
#[derive(Debug, Clone)]
pub(super) struct Candidates {
    /// Where an answer begins, highest first.
    pub(super) starts: Vec<Candidate>,
    /// Where an answer ends, highest first.
    pub(super) ends: Vec<Candidate>,
    /// Whether a logit is minus infinity.
    pub(super) is_masked: bool,
}

/// The error for a response that contains no logits.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LogitsError {
    /// Another type than a float.
    #[error("logits are float32 or float16, not {0:?}")]
    Type(LabelType),
    /// The response has another length than pairs of logits.
    #[error("{length} bytes are not pairs of {dtype:?} logits for at most {tokens} tokens")]
    Length {
        /// The response's length in bytes.
        length: usize,
        /// The type of a logit.
        dtype: LabelType,
        /// The tokens of a sample.
        tokens: usize,
    },
    /// A logit is infinite or not a number. Minus infinity is a logit: networks mask padding with it.
    #[error("the logit at position {position} is {value}")]
    NotComparable {
        /// The logit's position in the response.
        position: usize,
        /// The logit.
        value: f64,
    },
}

impl Candidates {
    /// Reads a response for a sample of `tokens` tokens: start and end of each token in turns.
    pub(super) fn read(data: &[u8], dtype: LabelType, tokens: usize) -> Result<Self, LogitsError> {
        let size = match dtype {
            LabelType::Float16 => 2,
            LabelType::Float32 => 4,
            other => return Err(LogitsError::Type(other)),
        };
        if !data.len().is_multiple_of(2 * size) || data.len() > 2 * size * tokens {
            return Err(LogitsError::Length {
                length: data.len(),
                dtype,
                tokens,
            });
        }
        let values = data.chunks_exact(size).map(|bytes| match *bytes {
            [low, high] => f16::from_le_bytes([low, high]).to_f64(),
            [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
            _ => f64::NAN,
        });
        let (mut starts, mut ends) = (vec![PADDING; tokens], vec![PADDING; tokens]);
        let mut is_masked = false;
        for (position, value) in values.enumerate() {
            is_masked |= value == f64::NEG_INFINITY;
            if value.is_nan() || value == f64::INFINITY {
                return Err(LogitsError::NotComparable { position, value });
            }
            let of = if position % 2 == 0 { &mut starts } else { &mut ends };
            of[position / 2] = value;
        }
        Ok(Self {
            starts: highest(&starts),
            ends: highest(&ends),
            is_masked,
        })
    }
}

/// Returns the highest logits; the first of equal ones comes first.
fn highest(logits: &[f64]) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = logits.iter().copied().enumerate().collect();
    // Adding 0 makes negative zeros positive: they are equal in Python.
    found.sort_by(|(_, one), (_, other)| (other + 0.0).total_cmp(&(one + 0.0)));
    found.truncate(BEST);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_of_both_types_are_read_and_others_refused() {
        let values = [1.0_f32, -0.0, 3.0, 0.0];
        let single: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
        let half: Vec<u8> = values
            .into_iter()
            .flat_map(|value| f16::from_f32(value).to_le_bytes())
            .collect();
        for (data, dtype) in [(&single, LabelType::Float32), (&half, LabelType::Float16)] {
            let found = Candidates::read(data, dtype, 3).unwrap();
            assert_eq!(found.starts, [(1, 3.0), (0, 1.0), (2, -10000.0)]);
            assert_eq!(found.ends[0].0, 0, "equal logits keep their order");
        }
        let refused = |data: &[u8], dtype, tokens| Candidates::read(data, dtype, tokens).unwrap_err();
        let f32s = LabelType::Float32;
        assert_eq!(
            refused(&single, f32s, 1),
            LogitsError::Length {
                length: 16,
                dtype: f32s,
                tokens: 1
            }
        );
        assert!(matches!(
            refused(&single[..12], f32s, 3),
            LogitsError::Length { .. }
        ));
        assert_eq!(
            refused(&single, LabelType::Int32, 3),
            LogitsError::Type(LabelType::Int32)
        );
        let nan: Vec<u8> = [1.0, f32::NAN].into_iter().flat_map(f32::to_le_bytes).collect();
        let error = refused(&nan, f32s, 3);
        assert!(matches!(error, LogitsError::NotComparable { position: 1, value } if value.is_nan()));
        let mask = [1.0, 2.0, f32::NEG_INFINITY, f32::NEG_INFINITY];
        let mask: Vec<u8> = mask.into_iter().flat_map(f32::to_le_bytes).collect();
        let found = Candidates::read(&mask, f32s, 2).unwrap();
        assert_eq!(found.starts, [(0, 1.0), (1, f64::NEG_INFINITY)]);
        assert!(found.is_masked);
    }
}
