//! What `regatta-agent tune` tries of a setting, as the declaration says it. The search itself is in the agent.

use regatta_types::{Scenario, documents::EngineKind};

/// The values that a search tries in some engines and scenarios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchRule {
    /// The engines.
    pub engines: &'static [EngineKind],
    /// The scenarios.
    pub scenarios: &'static [Scenario],
    /// The values, the least costly (in memory or processor time) first.
    pub values: SearchValues,
    /// The values of the first round. Where none of them is among the values, the first value.
    pub first: &'static [Bound],
    /// Whether the setting is searched only where there are DLA cores.
    pub needs_dla: bool,
}

/// Values that a search tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchValues {
    /// 1, 2, 4 and so on, and the bound.
    Doublings(Bound),
    /// Every number from 0 to the bound.
    UpTo(Bound),
    /// These numbers.
    Numbers(&'static [usize]),
    /// These words; the first round tries the first.
    Words(&'static [&'static str]),
}

/// A number, or one that the machine or the scenario gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// This number.
    Number(usize),
    /// Logical processors.
    Processors,
    /// DLA cores.
    DlaCores,
    /// Samples of a MultiStream query.
    SamplesPerQuery,
}
