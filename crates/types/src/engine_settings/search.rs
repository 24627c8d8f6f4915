//! The values of a setting that `regatta-agent tune` tries, as the declaration lists them. The agent has the search itself.

use crate::{EngineKind, Scenario};

/// The values that a search tries for certain engines and scenarios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchRule {
    /// The engines that the rule is for.
    pub engines: &'static [EngineKind],
    /// The scenarios that the rule is for.
    pub scenarios: &'static [Scenario],
    /// The values, the least costly (in memory or processor time) first.
    pub values: SearchValues,
    /// The values of the first round. If none of them is among the values, the first value.
    pub first: &'static [Bound],
    /// Whether the setting is only searched on machines with DLA cores.
    pub needs_dla: bool,
}

/// The values that a search tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchValues {
    /// 1, 2, 4 and so on, and the bound itself.
    Doublings(Bound),
    /// Every number from 0 to the bound.
    UpTo(Bound),
    /// These numbers.
    Numbers(&'static [usize]),
    /// These words; the first round only tries the first one.
    Words(&'static [&'static str]),
}

/// A number that is fixed or depends on the machine or the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// A fixed number.
    Number(usize),
    /// The number of logical processors.
    Processors,
    /// The number of DLA cores.
    DlaCores,
    /// The number of samples of a MultiStream query.
    SamplesPerQuery,
}
