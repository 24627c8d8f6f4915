//! `std::shuffle` as LLVM's libc++ does it, which LoadGens on macOS are built with. The GNU library's is LoadGen's own in
//! `regatta-loadgen`.

use regatta_loadgen::rng::Mt19937;

/// The numbers from 0 to `count`, shuffled.
pub(super) fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut generator = Mt19937::new(seed);
    let mut items: Vec<_> = (0..count).collect();
    for first in 0..count.saturating_sub(1) {
        let drawn = below(&mut generator, count - first);
        items.swap(first, first + drawn);
    }
    items
}

/// A number below `bound`, which is less than 2^32: the lowest bits of the generator's, until they are small enough.
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

    /// The first samples of published logs of Macs.
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
