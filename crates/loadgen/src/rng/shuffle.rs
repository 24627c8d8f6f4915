//! `std::shuffle` as libstdc++ does it.

use super::{Mt19937, RngAbi};

impl RngAbi {
    /// Shuffles in place. For small ranges, libstdc++ draws two positions from one random number.
    pub fn shuffle<T>(self, items: &mut [T], generator: &mut Mt19937) {
        walk(self, items.len(), generator, |a, b| items.swap(a, b));
    }

    /// Advances the generator by the draws of shuffling `length` items. Their number depends on the drawn values.
    pub fn skip_shuffle(self, length: usize, generator: &mut Mt19937) {
        walk(self, length, generator, |_, _| {});
    }
}

#[inline]
fn walk(abi: RngAbi, length: usize, generator: &mut Mt19937, mut swap: impl FnMut(usize, usize)) {
    const DRAW_RANGE: u64 = u32::MAX as u64;
    let range = length as u64;
    if range == 0 {
        return;
    }
    if DRAW_RANGE / range < range {
        for position in 1..range {
            swap_one(&mut swap, position, abi.uniform_below(generator, position + 1));
        }
        return;
    }
    let mut position = 1;
    if range.is_multiple_of(2) {
        swap_one(&mut swap, position, abi.uniform_below(generator, 2));
        position += 1;
    }
    while position < range {
        let (first_choices, second_choices) = (position + 1, position + 2);
        let drawn = abi.uniform_below(generator, first_choices * second_choices);
        swap_one(&mut swap, position, drawn / second_choices);
        swap_one(&mut swap, position + 1, drawn % second_choices);
        position += 2;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "positions come from a usize")]
#[inline]
fn swap_one(swap: &mut impl FnMut(usize, usize), a: u64, b: u64) {
    swap(a as usize, b as usize);
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABIS: [RngAbi; 2] = [RngAbi::Libstdcxx11, RngAbi::Libstdcxx10];

    proptest::proptest! {
        #[test]
        fn a_skipped_shuffle_leaves_the_generator_where_a_real_one_does(length in 0_usize..3000, seed: u64) {
            for abi in ABIS {
                let mut skipped = Mt19937::new(seed);
                let mut real = skipped.clone();
                abi.skip_shuffle(length, &mut skipped);
                let mut items: Vec<usize> = (0..length).collect();
                abi.shuffle(&mut items, &mut real);
                proptest::prop_assert_eq!(skipped.next_u32(), real.next_u32());
                items.sort_unstable();
                proptest::prop_assert!(items.into_iter().eq(0..length));
            }
        }
    }

    #[test]
    fn large_ranges_draw_one_position_at_a_time() {
        for abi in ABIS {
            let mut items: Vec<u32> = (0..70_000).collect();
            let mut generator = Mt19937::new(1);
            abi.shuffle(&mut items, &mut generator);
            let mut skipped = Mt19937::new(1);
            abi.skip_shuffle(items.len(), &mut skipped);
            assert_eq!(generator.next_u32(), skipped.next_u32());
        }
    }
}
