//! The identity of a load generator.

/// The LoadGen that drove a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadgenIdentity {
    /// `regatta-loadgen` for Regatta's own, `mlcommons-loadgen` for the official one.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its source revision, or `NA` when it has none. Only official revisions can be submittable.
    pub revision: String,
    /// The C++ library whose distributions and shuffle it uses.
    pub rng_abi: String,
}
