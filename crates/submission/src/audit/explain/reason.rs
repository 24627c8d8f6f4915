//! Why responses differ.

/// Something that the logs show about the differing responses.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// None is as expected.
    All,
    /// Each is that of a sample so many places on.
    Shifted {
        /// How many places.
        by: i64,
    },
    /// So many are the whole response of some other sample.
    OfOtherSamples {
        /// How many.
        count: u64,
    },
    /// So many differ from an earlier response to the same sample in the audit's own run.
    AuditDisagrees {
        /// How many.
        count: u64,
    },
    /// The accuracy run itself gave so many second responses that differ.
    ReferenceDisagrees {
        /// How many.
        count: u64,
    },
    /// So many have another length than the expected ones.
    Lengths {
        /// How many.
        count: u64,
        /// One of the samples.
        qsl_idx: u64,
        /// Its length in the accuracy run.
        expected: u64,
        /// Its length in the audit's run.
        actual: u64,
    },
    /// They are near the expected ones.
    Rounding,
    /// They come from some places in the order of issue only.
    Periodic {
        /// The period in `seq_id`.
        period: u64,
        /// The remainders that have differing responses.
        remainders: Vec<u64>,
    },
    /// They are few.
    Few,
    /// Which unit computed them was noted, but the notes cannot be used.
    UnitsUnknown {
        /// Why.
        why: String,
    },
}
