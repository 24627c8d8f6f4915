//! The random numbers of the official LoadGen, bit for bit: generator, distributions and shuffle of a C++ library.
//!
//! The C++ standard fixes the generator but not the distributions, so sample order depends on the standard library that
//! LoadGen was built with. [`RngAbi`] names it.

mod distributions;
mod mt19937;
mod shuffle;

pub use distributions::{canonical, exponential};
pub use mt19937::Mt19937;

use std::fmt;

/// Whose distributions and shuffle are reproduced. The two give other samples for the same seeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RngAbi {
    /// GNU libstdc++ 11 and later: bounded integers by multiplication.
    #[default]
    Libstdcxx11,
    /// GNU libstdc++ 10 and before, as JetPack 5 has it: bounded integers by division.
    Libstdcxx10,
}

impl RngAbi {
    /// The name in run records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Libstdcxx11 => "libstdc++-11",
            Self::Libstdcxx10 => "libstdc++-10",
        }
    }
}

impl fmt::Display for RngAbi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
