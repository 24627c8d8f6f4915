//! Distributions as libstdc++ computes them from a 32-bit generator. Only bounded integers depend on its version.

use super::{Mt19937, RngAbi};

impl RngAbi {
    /// Returns a uniform integer below `bound` (`std::uniform_int_distribution` over `0..=bound - 1`); 0 means 2^64.
    #[inline]
    pub fn uniform_below(self, generator: &mut Mt19937, bound: u64) -> u64 {
        match u32::try_from(bound) {
            Ok(0) => self.uniform_wide(generator, u64::MAX),
            Ok(bound) => u64::from(match self {
                Self::Libstdcxx11 => by_multiplication(generator, bound),
                Self::Libstdcxx10 => by_division(generator, bound),
            }),
            Err(_) if bound == 1 << 32 => u64::from(generator.next_u32()),
            Err(_) => self.uniform_wide(generator, bound - 1),
        }
    }

    /// Returns a uniform integer up to and including `last`, which needs more than 32 bits, from two draws.
    fn uniform_wide(self, generator: &mut Mt19937, last: u64) -> u64 {
        loop {
            let high = self
                .uniform_below(generator, (last >> 32) + 1)
                .wrapping_mul(1 << 32);
            let drawn = high.wrapping_add(u64::from(generator.next_u32()));
            if drawn <= last && drawn >= high {
                return drawn;
            }
        }
    }
}

/// Divides the range into `bound` intervals of equal length. A value beyond the last interval is drawn again. `bound` is not 0.
#[inline]
fn by_division(generator: &mut Mt19937, bound: u32) -> u32 {
    let stretch = u32::MAX / bound;
    loop {
        let drawn = generator.next_u32();
        if drawn < stretch * bound {
            return drawn / stretch;
        }
    }
}

/// Multiplies as Lemire's method does, and rejects low words that would favour some results.
#[inline]
fn by_multiplication(generator: &mut Mt19937, bound: u32) -> u32 {
    let product = |generator: &mut Mt19937| u64::from(generator.next_u32()) * u64::from(bound);
    let low = |product: u64| product & u64::from(u32::MAX);
    let mut drawn = product(generator);
    if low(drawn) < u64::from(bound) {
        let threshold = u64::from(bound.wrapping_neg() % bound);
        while low(drawn) < threshold {
            drawn = product(generator);
        }
    }
    // The product has two 32-bit factors, so the upper half fits.
    (drawn >> 32) as u32
}

/// Returns a double in `0.0..1.0` from two draws (`std::generate_canonical` with 53 bits, which `std::uniform_real_distribution(0, 1)`
/// returns unchanged).
#[inline]
pub fn canonical(generator: &mut Mt19937) -> f64 {
    const TWO_32: f64 = 4_294_967_296.0;
    let low = f64::from(generator.next_u32());
    let high = f64::from(generator.next_u32());
    let value = (low + high * TWO_32) / (TWO_32 * TWO_32);
    if value >= 1.0 { 1.0_f64.next_down() } else { value }
}

/// Returns a double with exponential distribution (`std::exponential_distribution`); `rate` is events per unit.
#[inline]
pub fn exponential(generator: &mut Mt19937, rate: f64) -> f64 {
    -(1.0 - canonical(generator)).ln() / rate
}
