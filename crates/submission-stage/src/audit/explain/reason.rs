//! The reasons why responses differ.

/// A pattern that the logs show among the differing responses.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// All compared responses differ.
    All,
    /// Each differing response is that of a sample at a constant distance.
    Shifted {
        /// The distance in sample indices.
        by: i64,
    },
    /// Some differing responses equal the complete response to another sample.
    OfOtherSamples {
        /// The number of these responses.
        count: u64,
    },
    /// Some responses differ from an earlier response to the same sample in the audit's own run.
    AuditDisagrees {
        /// The number of these responses.
        count: u64,
    },
    /// The accuracy run itself has different responses to the same sample.
    ReferenceDisagrees {
        /// The number of repeated responses that differ.
        count: u64,
    },
    /// Some responses have another length than the expected ones.
    Lengths {
        /// The number of these responses.
        count: u64,
        /// The index of one of the samples.
        qsl_idx: u64,
        /// Its length in the accuracy run, in bytes.
        expected: u64,
        /// Its length in the audit's run, in bytes.
        actual: u64,
    },
    /// The differing responses are close to the expected ones.
    Rounding,
    /// The differing responses only occur at some places in the order of issue.
    Periodic {
        /// The period in `seq_id`.
        period: u64,
        /// The remainders that have differing responses.
        remainders: Vec<u64>,
    },
    /// Few responses differ.
    Few,
    /// The run recorded which unit computed each response, but the record cannot be used.
    UnitsUnknown {
        /// The reason.
        why: String,
    },
}
