//! Counts the comparisons and prints them as a table; `docs/loadgen.md` has its summary.

use std::{collections::BTreeMap, fmt};

use crate::cases::Case;

/// Settings compared, by scenario and mode.
#[derive(Default)]
pub(crate) struct Tally {
    by_kind: BTreeMap<(String, String), u64>,
    refused: u64,
}

impl Tally {
    /// How many settings were compared.
    pub(crate) fn compared(&self) -> u64 {
        self.by_kind.values().sum()
    }

    /// Counts settings with equal results.
    pub(crate) fn equal(&mut self, case: &Case) {
        *self
            .by_kind
            .entry((case.scenario.to_string(), case.mode.to_string()))
            .or_default() += 1;
    }

    /// Counts settings that ours refuses, where the official LoadGen would read beyond its arrays. If most were refused, the test
    /// would prove nothing.
    pub(crate) fn refused(&mut self) {
        self.refused += 1;
        assert!(
            self.refused < 20 + self.compared() / 4,
            "most settings must be runnable"
        );
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| scenario | mode | settings equal |\n|---|---|---|")?;
        for ((scenario, mode), count) in &self.by_kind {
            writeln!(f, "| {scenario} | {mode} | {count} |")?;
        }
        write!(f, "{} equal, {} refused by ours", self.compared(), self.refused)
    }
}
