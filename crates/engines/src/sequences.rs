//! The lengths at which an engine computes sequences, and which of them each sample takes. Reads no samples.

/// Lengths, ascending, with the number of the length that each sample takes. Without lengths, all samples take the full one.
#[derive(Debug, Default)]
pub struct SequenceBuckets {
    /// Tokens of each length. The last is the full length.
    lengths: Vec<usize>,
    /// For each sample of the dataset, the number of its length.
    of_samples: Vec<u8>,
}

impl SequenceBuckets {
    /// Returns the buckets for samples with these numbers of tokens. `lengths` are ascending, at most 256, and the last is the full length.
    pub fn new(lengths: Vec<usize>, tokens: impl Iterator<Item = usize>) -> Self {
        let longest = lengths.len().saturating_sub(1);
        let bucket = |tokens| {
            let number = lengths.iter().position(|&length| length >= tokens);
            u8::try_from(number.unwrap_or(longest)).unwrap_or(u8::MAX)
        };
        let of_samples = tokens.map(bucket).collect();
        Self { lengths, of_samples }
    }

    /// Returns whether samples take different lengths.
    pub const fn are_several(&self) -> bool {
        self.lengths.len() > 1
    }

    /// Returns the number of lengths, at least 1.
    pub fn count(&self) -> usize {
        self.lengths.len().max(1)
    }

    /// Returns the lengths in tokens. Empty if all samples take the full length.
    pub fn lengths(&self) -> &[usize] {
        if self.are_several() { &self.lengths } else { &[] }
    }

    /// Returns the number of a sample's length, from 0.
    pub fn of(&self, sample: usize) -> usize {
        let longest = self.count() - 1;
        let bucket = self.of_samples.get(sample);
        bucket.map_or(longest, |&bucket| usize::from(bucket)).min(longest)
    }

    /// Returns the number of the length that a batch takes: that of its longest sample.
    pub fn of_batch(&self, samples: &[usize]) -> usize {
        if !self.are_several() {
            return 0;
        }
        samples.iter().map(|&sample| self.of(sample)).fold(0, usize::max)
    }

    /// Returns the tokens of a sample's length, or `full` if all samples take the full one.
    pub fn tokens(&self, sample: usize, full: usize) -> usize {
        self.lengths().get(self.of(sample)).copied().unwrap_or(full)
    }

    /// Returns one sample of each length that samples take, the shortest first.
    pub fn examples(&self) -> Vec<usize> {
        let first = |bucket| (0..self.of_samples.len()).find(|&sample| self.of(sample) == bucket);
        (0..self.count()).filter_map(first).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_takes_the_shortest_length_that_holds_it_and_a_batch_its_longest() {
        let buckets = SequenceBuckets::new(vec![4, 8, 16], [1, 4, 5, 16, 9].into_iter());
        let taken: Vec<_> = (0..5).map(|sample| buckets.tokens(sample, 16)).collect();
        assert_eq!(taken, [4, 4, 8, 16, 16]);
        let batches = [&[0, 1][..], &[1, 2, 0], &[9]].map(|batch| buckets.of_batch(batch));
        assert_eq!(batches, [0, 1, 2]);
        assert_eq!(buckets.examples(), [0, 2, 3]);
        let one = SequenceBuckets::default();
        assert_eq!(
            (one.count(), one.of(3), one.tokens(3, 16), one.lengths().len()),
            (1, 0, 16, 0)
        );
    }
}
