//! Every query is cut in the same way: each unit takes its portion, in batches of at most its largest.

use super::Policy;

/// A fixed cut, for queries that come one at a time and are of one size.
#[derive(Debug, Clone)]
pub struct ByPortions {
    portions: Vec<usize>,
    most: Vec<usize>,
    /// What each unit has still to take of the query at hand.
    left: Vec<usize>,
}

impl ByPortions {
    /// With samples per unit, and the largest batch of each.
    #[must_use]
    pub fn new(portions: Vec<usize>, most: Vec<usize>) -> Self {
        Self {
            left: vec![0; portions.len()],
            portions,
            most,
        }
    }
}

impl Policy for ByPortions {
    /// `remaining` says which query it is: one that nobody has taken from begins anew. A query of another size than the
    /// cut's goes to whoever asks once the portions are used up.
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
