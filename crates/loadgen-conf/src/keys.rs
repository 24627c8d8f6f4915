//! The keys of conf files: the values that LoadGen reads correctly, and the file in which it reads each key. How large a value may be
//! depends on the run; [`TestSettings::check`](crate::TestSettings::check) checks that.

use regatta_types::Scenario;

use super::{ConfProblem, IntegerReading, Number};

/// The values of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// 0 or 1.
    Flag,
    /// An integer of 0 or more.
    Count,
    /// An integer of either sign.
    Integer,
    /// A decimal number.
    Decimal,
    /// Any value, because no LoadGen reads it.
    Unread,
}

/// A key that LoadGen knows.
#[derive(Debug)]
pub(super) struct Key {
    name: &'static str,
    /// The only scenario of this entry; `None` for all scenarios without a separate entry.
    scenario: Option<Scenario>,
    kind: Kind,
    /// Whether only `mlperf.conf` may set it.
    pub(super) is_official: bool,
}

const fn common(name: &'static str, kind: Kind) -> Key {
    Key {
        name,
        scenario: None,
        kind,
        is_official: false,
    }
}

/// Returns a key whose values in Server differ from those in other scenarios.
const fn of_server(name: &'static str, kind: Kind) -> Key {
    Key {
        scenario: Some(Scenario::Server),
        ..common(name, kind)
    }
}

const fn official(name: &'static str, kind: Kind) -> Key {
    Key {
        is_official: true,
        ..common(name, kind)
    }
}

const KEYS: [Key; 35] = [
    common("mode", Kind::Count),
    common("use_token_latencies", Kind::Flag),
    common("ttft_latency", Kind::Count),
    common("tpot_latency", Kind::Count),
    common("infer_token_latencies", Kind::Flag),
    common("token_latency_scaling_factor", Kind::Count),
    common("target_latency_percentile", Kind::Decimal),
    common("samples_per_query", Kind::Count),
    of_server("target_latency", Kind::Count),
    common("target_latency", Kind::Decimal),
    common("target_qps", Kind::Decimal),
    common("performance_issue_unique", Kind::Flag),
    common("performance_issue_same", Kind::Flag),
    common("performance_issue_same_index", Kind::Count),
    common("sample_concatenate_permutation", Kind::Flag),
    common("coalesce_queries", Kind::Flag),
    common("max_async_queries", Kind::Integer),
    common("min_duration", Kind::Count),
    common("max_duration", Kind::Count),
    common("min_query_count", Kind::Count),
    common("max_query_count", Kind::Count),
    common("performance_sample_count_override", Kind::Count),
    common("accuracy_sample_count_override", Kind::Count),
    common("print_timestamps", Kind::Flag),
    common("accuracy_log_rng_seed", Kind::Count),
    common("accuracy_log_sampling_target", Kind::Count),
    // In the official conf, but no LoadGen has read it since v0.7, so it deserves no warning.
    common("target_duration", Kind::Unread),
    official("qsl_rng_seed", Kind::Count),
    official("sample_index_rng_seed", Kind::Count),
    official("schedule_rng_seed", Kind::Count),
    official("accuracy_log_probability", Kind::Decimal),
    official("test05", Kind::Flag),
    official("test05_qsl_rng_seed", Kind::Count),
    official("test05_sample_index_rng_seed", Kind::Count),
    official("test05_schedule_rng_seed", Kind::Count),
];

/// Returns the names of the keys that a user may set for a run. The mode is the run's own.
pub(super) fn user_keys() -> impl Iterator<Item = &'static str> {
    let effective = |key: &&Key| !key.is_official && key.kind != Kind::Unread && key.scenario.is_none();
    let names = KEYS.iter().filter(effective).map(|key| key.name);
    names.filter(|name| *name != "mode")
}

impl Key {
    /// Whether no LoadGen reads the key.
    pub(super) fn is_unread(&self) -> bool {
        self.kind == Kind::Unread
    }

    /// Returns the key of that name in a line for `scenario`, which may be `*`.
    pub(super) fn of(scenario: &str, name: &str) -> Option<&'static Self> {
        let concerns = |key: &Self| key.scenario.is_none_or(|own| own.as_str() == scenario);
        KEYS.iter().find(|key| key.name == name && concerns(key))
    }

    /// Rejects a value that LoadGen would read as a different one.
    pub(super) fn check(&self, full_key: &str, word: &str, value: Number) -> Result<(), ConfProblem> {
        let reading = value.integer_reading();
        let is_unsigned = matches!(reading, IntegerReading::Exact | IntegerReading::Truncated);
        let (is_right, expected, hint) = match self.kind {
            Kind::Unread => return Ok(()),
            Kind::Flag => (
                is_unsigned && value.as_u64() <= 1,
                "0 or 1",
                "1 switches it on, 0 off",
            ),
            Kind::Count => (
                is_unsigned,
                "an integer from 0 to 18446744073709551615",
                "leave the line out for LoadGen's default",
            ),
            Kind::Integer => (
                is_unsigned || reading == IntegerReading::Negative,
                "an integer",
                "leave the line out for LoadGen's default",
            ),
            Kind::Decimal => (
                value.as_f64().is_finite(),
                "a finite number",
                "leave the line out for LoadGen's default",
            ),
        };
        if is_right {
            return Ok(());
        }
        Err(ConfProblem::Value {
            key: full_key.to_owned(),
            found: word.to_owned(),
            expected,
            hint,
        })
    }

    /// Whether LoadGen reads less than the written value.
    pub(super) fn truncates(&self, value: Number) -> bool {
        matches!(self.kind, Kind::Flag | Kind::Count | Kind::Integer)
            && value.integer_reading() == IntegerReading::Truncated
    }
}
