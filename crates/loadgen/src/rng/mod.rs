//! The random numbers of the official LoadGen, bit for bit: generator, distributions and shuffle of a C++ library.
//!
//! The C++ standard defines the generator but not the distributions. Sample order therefore depends on the standard library that LoadGen
//! was built with, which [`RngAbi`] names.

mod distributions;
mod mt19937;
mod shuffle;

pub use distributions::{canonical, exponential};
pub use mt19937::Mt19937;

use std::fmt;

/// The C++ library whose distributions and shuffle are reproduced. The variants select different samples for the same seeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RngAbi {
    /// GNU libstdc++ 11 and later: bounded integers by multiplication.
    #[default]
    Libstdcxx11,
    /// GNU libstdc++ 10 and before, as in JetPack 5: bounded integers by division.
    Libstdcxx10,
}

impl RngAbi {
    /// Returns the name in run records.
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
