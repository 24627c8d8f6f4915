//! `std::shuffle` as implemented in LLVM's libc++, which LoadGen uses on macOS.
//!
//! `regatta-loadgen` implements the GNU library's variant.

use regatta_loadgen::rng::Mt19937;

/// Returns the numbers from 0 to `count` (exclusive), shuffled.
pub(super) fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut generator = Mt19937::new(seed);
    let mut items: Vec<_> = (0..count).collect();
    for first in 0..count.saturating_sub(1) {
        let drawn = below(&mut generator, count - first);
        items.swap(first, first + drawn);
    }
    items
}

/// Returns a random number below `bound`, which must be less than 2^32.
///
/// It takes the lowest bits of the generator's output and draws again until the number is below `bound`.
fn below(generator: &mut Mt19937, bound: usize) -> usize {
    let bits = usize::BITS - (bound - 1).leading_zeros();
    let mask = (1_usize << bits) - 1;
    loop {
        let drawn = generator.next_u32() as usize & mask;
        if drawn < bound {
            return drawn;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shuffled;

    /// The expected values are the first samples in published logs from Macs.
    #[test]
    fn the_order_is_that_of_published_logs() {
        for (seed, first) in [
            (1_780_908_523_862_526_354, [48_336, 14_652, 6_037, 8_911]),
            (14_284_205_019_438_841_327, [30_475, 48_227, 48_400, 49_138]),
        ] {
            assert_eq!(shuffled(50_000, seed)[..4], first);
        }
    }
}
