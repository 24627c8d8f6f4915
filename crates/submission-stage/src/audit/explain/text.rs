//! Formats the explanation as sentences.

use std::fmt;

use super::{Explanation, Reason};

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.responses == 0 {
            return write!(f, "no response differs");
        }
        let percent = 100.0 * self.responses as f64 / self.compared as f64;
        write!(
            f,
            "{} of {} compared responses differ ({percent:.2} %), of {} samples",
            self.responses, self.compared, self.samples
        )?;
        if let Some(apart) = &self.distances {
            write!(
                f,
                "\nfirst elements are {} to {} apart, half of them at most {}",
                apart.least, apart.greatest, apart.median
            )?;
            if let Some(relative) = apart.greatest_relative {
                write!(f, "; at most {:.3} % of their size", 100.0 * relative)?;
            }
        }
        for share in &self.units {
            let unit = share.unit.as_deref().unwrap_or("no noted unit");
            write!(
                f,
                "\nby {unit}: {} differ of {} compared",
                share.differing, share.compared
            )?;
        }
        self.reasons.iter().try_for_each(|reason| write!(f, "\n{reason}"))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => write!(
                f,
                "none is as expected: first look for another model, other preprocessing or another data type"
            ),
            Self::Shifted { by } => write!(
                f,
                "each response is that of the sample {by:+} places on: the two runs number their samples differently"
            ),
            Self::OfOtherSamples { count } => write!(
                f,
                "{count} are complete responses of other samples: responses were sent for the wrong queries"
            ),
            Self::AuditDisagrees { count } => write!(
                f,
                "{count} differ from an earlier response to the same sample in the audit itself: the SUT does not always \
                 compute the same (units of different kinds, batch sizes, atomics)"
            ),
            Self::ReferenceDisagrees { count } => write!(
                f,
                "the accuracy run answered {count} repeated samples differently itself"
            ),
            Self::Lengths {
                count,
                qsl_idx,
                expected,
                actual,
            } => write!(
                f,
                "{count} have another length: sample {qsl_idx} has {expected} bytes in the accuracy run and {actual} in the audit"
            ),
            Self::Rounding => write!(
                f,
                "all are near the expected ones: they differ by the order of arithmetic"
            ),
            Self::Periodic { period, remainders } => write!(
                f,
                "they come only from queries with seq_id mod {period} in {remainders:?}: look at the unit or batch place \
                 that answers those"
            ),
            Self::UnitsUnknown { why } => write!(
                f,
                "which unit computed them was noted, but the notes cannot be used: {why}"
            ),
            Self::Few => write!(
                f,
                "they are few, as when units of different kinds (GPU and DLA) share the work: TEST01's part III compares \
                 accuracies instead"
            ),
        }
    }
}
