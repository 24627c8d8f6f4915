//! Pairs the runs of two sides by time.
//!
//! In the order of time, each run is paired with the latest earlier run of the other side that has no partner yet. Interleaved runs
//! A B A B are thereby paired with their neighbours, and of unequal counts the surplus that is farthest away remains without a partner.

/// The side of a comparison that a run is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The base.
    A,
    /// What is compared with the base.
    B,
}

/// The pairs of two sides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs {
    /// The positions of each pair's runs in the sequence: the one of A, the one of B. In the order in which pairs are complete.
    pub pairs: Vec<(usize, usize)>,
    /// The positions of the runs without a partner, in their order.
    pub unpaired: Vec<usize>,
}

/// Pairs a sequence of runs, which are in the order of time.
#[must_use]
pub fn pair(sequence: &[Side]) -> Pairs {
    let mut found = Pairs::default();
    // All of one side: two waiting runs of different sides would be a pair.
    let mut waiting: Vec<usize> = Vec::new();
    for (position, &side) in sequence.iter().enumerate() {
        match waiting.pop() {
            Some(earlier) if sequence[earlier] != side => found.pairs.push(match side {
                Side::A => (position, earlier),
                Side::B => (earlier, position),
            }),
            earlier => {
                waiting.extend(earlier);
                waiting.push(position);
            }
        }
    }
    found.unpaired = waiting;
    found
}

/// Returns whether every paired run of one side is earlier than every paired run of the other, in three pairs or more. Then a drift of
/// the device counts as a difference of the sides.
#[must_use]
pub fn is_separated(pairs: &[(usize, usize)]) -> bool {
    let range = |side: fn(&(usize, usize)) -> usize| {
        let positions = || pairs.iter().map(side);
        positions().min().zip(positions().max())
    };
    match (range(|pair| pair.0), range(|pair| pair.1)) {
        (Some(a), Some(b)) => pairs.len() > 2 && (a.1 < b.0 || b.1 < a.0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sides(text: &str) -> Vec<Side> {
        text.chars()
            .map(|c| if c == 'A' { Side::A } else { Side::B })
            .collect()
    }

    #[test]
    fn neighbours_are_paired_and_the_distant_surplus_is_left() {
        let found = |text: &str| {
            let found = pair(&sides(text));
            (found.pairs, found.unpaired)
        };
        assert_eq!(found("ABAB"), (vec![(0, 1), (2, 3)], vec![]));
        assert_eq!(found("ABBA"), (vec![(0, 1), (3, 2)], vec![]));
        assert_eq!(found("AABB"), (vec![(1, 2), (0, 3)], vec![]));
        assert_eq!(found("AAAABAB"), (vec![(3, 4), (5, 6)], vec![0, 1, 2]));
        assert_eq!(found("BBB"), (vec![], vec![0, 1, 2]));
    }

    #[test]
    fn sides_that_ran_one_after_the_other_are_noticed() {
        let is = |text: &str| is_separated(&pair(&sides(text)).pairs);
        assert!(is("AAABBB") && is("BBBAAA"));
        assert!(!is("ABABAB") && !is("AABB") && !is("") && !is("AABBAB"));
    }

    proptest! {
        #[test]
        fn every_run_is_in_one_pair_or_in_none_and_one_side_is_used_up(sequence in proptest::collection::vec(any::<bool>(), 0..60)) {
            let sequence: Vec<Side> = sequence.iter().map(|&b| if b { Side::B } else { Side::A }).collect();
            let found = pair(&sequence);
            let mut used: Vec<usize> = found.pairs.iter().flat_map(|&(a, b)| [a, b]).chain(found.unpaired.iter().copied()).collect();
            used.sort_unstable();
            prop_assert_eq!(used, (0..sequence.len()).collect::<Vec<_>>());
            for (a, b) in &found.pairs {
                prop_assert_eq!((sequence[*a], sequence[*b]), (Side::A, Side::B));
            }
            let a = sequence.iter().filter(|&&side| side == Side::A).count();
            prop_assert_eq!(found.pairs.len(), a.min(sequence.len() - a));
        }
    }
}
