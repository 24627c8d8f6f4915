//! The policy that splits every query in the same way: each unit takes its portion, in batches of at most its largest size.

use super::Policy;

/// The policy of fixed portions, for queries of one size that arrive one at a time.
#[derive(Debug, Clone)]
pub struct FixedPortions {
    portions: Vec<usize>,
    most: Vec<usize>,
    /// The samples that each unit has yet to take of the current query.
    left: Vec<usize>,
}

impl FixedPortions {
    /// Creates the policy from the samples and the largest batch of each unit.
    #[must_use]
    pub fn new(portions: Vec<usize>, most: Vec<usize>) -> Self {
        Self {
            left: vec![0; portions.len()],
            portions,
            most,
        }
    }
}

impl Policy for FixedPortions {
    /// Starts the portions again when more samples remain than the portions have left: for a new query, and within a query
    /// that is larger than the portions.
    fn take(&mut self, unit: usize, _now: f64, remaining: usize) -> usize {
        let left: usize = self.left.iter().sum();
        if left == 0 || remaining > left {
            self.left.clone_from(&self.portions);
        }
        let size = self.left[unit].min(self.most[unit]).min(remaining);
        self.left[unit] -= size;
        size
    }

    fn done(&mut self, _unit: usize, _now: f64) {}
}
