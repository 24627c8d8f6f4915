//! LoadGen's settings by name: the numeric fields of `TestSettings`, for access through the C interface.

use std::{ffi::CStr, fmt};

use regatta_loadgen_conf::TestSettings;

/// A setting's value. Flags are integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Whole(u64),
    Real(f64),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(f),
            Self::Real(value) => value.fmt(f),
        }
    }
}

/// One numeric field of `TestSettings`.
pub(crate) struct Field {
    /// LoadGen's own name.
    pub(crate) key: &'static CStr,
    pub(crate) get: fn(&TestSettings) -> Number,
    pub(crate) set: fn(&mut TestSettings, Number),
}

/// Conversion of a field's type to and from the C interface.
trait AsNumber: Copy {
    fn number(self) -> Number;
    fn take(number: Number) -> Option<Self>;
}

impl AsNumber for u64 {
    fn number(self) -> Number {
        Number::Whole(self)
    }
    fn take(number: Number) -> Option<Self> {
        if let Number::Whole(value) = number {
            Some(value)
        } else {
            None
        }
    }
}

impl AsNumber for i32 {
    fn number(self) -> Number {
        // LoadGen has one such field, a number of decimals.
        Number::Whole(u64::try_from(self).unwrap_or(0))
    }
    fn take(number: Number) -> Option<Self> {
        if let Number::Whole(value) = number {
            Self::try_from(value).ok()
        } else {
            None
        }
    }
}

impl AsNumber for bool {
    fn number(self) -> Number {
        Number::Whole(u64::from(self))
    }
    fn take(number: Number) -> Option<Self> {
        if let Number::Whole(value) = number {
            Some(value != 0)
        } else {
            None
        }
    }
}

impl AsNumber for f64 {
    fn number(self) -> Number {
        Number::Real(self)
    }
    fn take(number: Number) -> Option<Self> {
        if let Number::Real(value) = number {
            Some(value)
        } else {
            None
        }
    }
}

macro_rules! fields {
    ($($name:ident)*) => {
        /// Every numeric field, in LoadGen's order.
        pub(crate) const FIELDS: &[Field] = &[$(Field {
            key: match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(key) => key,
                Err(_) => c"",
            },
            get: |settings| settings.$name.number(),
            set: |settings, number| {
                if let Some(value) = AsNumber::take(number) {
                    settings.$name = value;
                }
            },
        },)*];
    };
}

fields! {
    single_stream_expected_latency_ns single_stream_target_latency_percentile
    multi_stream_expected_latency_ns multi_stream_target_latency_percentile multi_stream_samples_per_query
    server_target_qps server_target_latency_ns server_target_latency_percentile server_coalesce_queries
    server_find_peak_qps_decimals_of_precision server_find_peak_qps_boundary_step_size
    server_max_async_queries server_num_issue_query_threads
    offline_expected_qps sample_concatenate_permutation
    min_duration_ms max_duration_ms min_query_count max_query_count
    qsl_rng_seed sample_index_rng_seed schedule_rng_seed accuracy_log_rng_seed
    accuracy_log_probability accuracy_log_sampling_target
    test05 test05_qsl_rng_seed test05_sample_index_rng_seed test05_schedule_rng_seed
    print_timestamps performance_issue_unique performance_issue_same performance_issue_same_index
    performance_sample_count_override accuracy_sample_count_override
    use_token_latencies server_ttft_latency server_tpot_latency
    infer_token_latencies token_latency_scaling_factor
}
