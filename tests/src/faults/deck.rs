//! The order of the kinds of faults in a plan.

use super::Rng;

/// Returns kinds without end, in random order. Every kind occurs before one occurs again.
pub fn deck<K: Copy>(kinds: Vec<K>, mut rng: Rng) -> impl Iterator<Item = K> {
    let mut left: Vec<K> = Vec::new();
    std::iter::from_fn(move || {
        if left.is_empty() {
            left.clone_from(&kinds);
            rng.shuffle(&mut left);
        }
        left.pop()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_occurs_before_one_occurs_again() {
        let dealt: Vec<u8> = deck(vec![1, 2, 3], Rng::new(5)).take(6).collect();
        for round in dealt.chunks(3) {
            let mut round = round.to_vec();
            round.sort_unstable();
            assert_eq!(round, [1, 2, 3]);
        }
        let again: Vec<u8> = deck(vec![1, 2, 3], Rng::new(5)).take(6).collect();
        assert_eq!(dealt, again, "a seed is an order");
        assert_eq!(deck(Vec::<u8>::new(), Rng::new(5)).next(), None);
    }
}
