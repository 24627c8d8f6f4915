//! Recognises LoadGen's recommendations that a new rate follows, among the reasons for INVALID. The sentences are LoadGen's, of every
//! revision.

/// LoadGen's recommendation about a run's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateAdvice {
    /// LoadGen prepared too few queries, because it expected a slower device.
    MoreQueries,
    /// The Server rate was too low to fill the duration.
    HigherRate,
    /// The Server rate was too high for the latency bound.
    LowerRate,
}

impl RateAdvice {
    /// Returns the advice in a reason for INVALID, if it is about the rate.
    pub fn of(reason: &str) -> Option<Self> {
        if reason.contains("expected latency") || reason.contains("xpected QPS") {
            Some(Self::MoreQueries)
        } else if reason.contains("Increase the target QPS") {
            Some(Self::HigherRate)
        } else if reason.contains("Reduce target QPS") {
            Some(Self::LowerRate)
        } else {
            None
        }
    }
}

/// Returns whether another rate can make a run VALID: a reason is about the rate, and no reason has another cause. Too few queries for
/// early stopping follow from the rate.
pub(super) fn is_fixed_by_rate(reasons: &[String]) -> bool {
    let is_about_rate = |reason: &String| RateAdvice::of(reason).is_some();
    let follows = |reason: &String| reason.starts_with("Early stopping");
    reasons.iter().any(is_about_rate)
        && reasons
            .iter()
            .all(|reason| is_about_rate(reason) || follows(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reasons_about_the_rate_are_fixed_by_a_rate() {
        for (reasons, is_fixed) in [
            (
                &["Decrease the expected latency so the loadgen pre-generates more queries."][..],
                true,
            ),
            (
                &["Increase expected QPS so the loadgen pre-generates a larger (coalesced) query."],
                true,
            ),
            (
                &[
                    "Increase the target QPS so the loadgen pre-generates more queries.",
                    "Early stopping: Only processed 12 queries.",
                ],
                true,
            ),
            (&["Reduce target QPS to improve latency."], true),
            (
                &["TTFT constrain not met: Reduce target QPS to improve latency."],
                true,
            ),
            (&["Early stopping: Only processed 12 queries."], false),
            (
                &["The test exited early, before enough queries were issued."],
                false,
            ),
            (
                &[
                    "Reduce target QPS to improve latency.",
                    "the SUT completed a sample twice",
                ],
                false,
            ),
            (&[], false),
        ] {
            let reasons: Vec<String> = reasons.iter().map(|&reason| reason.to_owned()).collect();
            assert_eq!(is_fixed_by_rate(&reasons), is_fixed, "{reasons:?}");
        }
    }
}
