//! The ranges that a meter had before a session, which are restored after it.

/// The range that the meter chooses itself.
const AUTO: &str = "Auto";

/// The ranges that a meter had before, in the words that set them again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InitialRanges {
    pub(super) volts: String,
    pub(super) amps: String,
}

impl Default for InitialRanges {
    fn default() -> Self {
        Self {
            volts: AUTO.to_owned(),
            amps: AUTO.to_owned(),
        }
    }
}

impl InitialRanges {
    /// Reads the reply to `RR`: `Ranges,AUTO,AMPS,AUTO,VOLTS`, with 0 as AUTO for a fixed range.
    pub(super) fn read(reply: &str) -> Option<Self> {
        let fields: Vec<&str> = reply.split(',').collect();
        let ["Ranges", amps_auto, amps, volts_auto, volts, ..] = fields.as_slice() else {
            return None;
        };
        let word = |auto: &str, range: &str| {
            let is_fixed = auto == "0" && range.parse::<f64>().is_ok_and(|range| range > 0.0);
            if is_fixed { range } else { AUTO }.to_owned()
        };
        Some(Self {
            volts: word(volts_auto, volts),
            amps: word(amps_auto, amps),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fixed_range_is_restored_as_a_number() {
        let words = |reply| InitialRanges::read(reply).map(|ranges| (ranges.volts, ranges.amps));
        let ranges = |volts: &str, amps: &str| Some((volts.to_owned(), amps.to_owned()));
        assert_eq!(words("Ranges,0,5,0,300"), ranges("300", "5"));
        assert_eq!(words("Ranges,1,-1.0,0,300"), ranges("300", "Auto"));
        assert_eq!(words("Ranges,-1,-1.0,0,-1.0"), ranges("Auto", "Auto"));
        assert_eq!(words("Ranges,0,x"), None);
        assert_eq!(words(""), None);
    }
}
