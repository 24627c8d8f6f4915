//! The faults of a simulated PTDaemon, parsed from command-line arguments.

use std::{fmt, str::FromStr, time::Duration};

use super::load::MarkedPart;

/// The fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It listens only after this time.
    SlowStart(Duration),
    /// It refuses every range that is a number.
    RefusedRange,
    /// It gives no further sample and answers no further command.
    Stall,
    /// It ends.
    Crash,
    /// It prints an error.
    ErrorLine,
    /// It prints that a sample is too uncertain.
    Uncertainty,
}

/// A fault, and when it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtdFault {
    pub kind: FaultKind,
    /// The measurement and its sample, counted from 0, with which it happens.
    when: Option<(MarkedPart, u64)>,
}

/// Words that name no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a fault of a PTDaemon; hint: slow-start=SECONDS, refused-range, or stall, crash, error or uncertainty \
     followed by =ranging:SAMPLE or =testing:SAMPLE"
)]
pub struct PtdFaultError(String);

impl PtdFault {
    /// Returns whether it happens with this sample of this measurement.
    pub(super) fn happens(&self, part: MarkedPart, sample: u64) -> bool {
        self.when == Some((part, sample))
    }
}

impl fmt::Display for PtdFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            FaultKind::SlowStart(time) => return write!(f, "slow-start={}", time.as_secs()),
            FaultKind::RefusedRange => "refused-range",
            FaultKind::Stall => "stall",
            FaultKind::Crash => "crash",
            FaultKind::ErrorLine => "error",
            FaultKind::Uncertainty => "uncertainty",
        };
        f.write_str(name)?;
        match self.when {
            Some((MarkedPart::Ranging, sample)) => write!(f, "=ranging:{sample}"),
            Some((_, sample)) => write!(f, "=testing:{sample}"),
            None => Ok(()),
        }
    }
}

impl FromStr for PtdFault {
    type Err = PtdFaultError;

    fn from_str(text: &str) -> Result<Self, PtdFaultError> {
        let unknown = || PtdFaultError(text.to_owned());
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let kind = match name {
            "slow-start" => {
                let seconds: u32 = value.parse().map_err(|_| unknown())?;
                let kind = FaultKind::SlowStart(Duration::from_secs(seconds.into()));
                return Ok(Self { kind, when: None });
            }
            "refused-range" if value.is_empty() => {
                let kind = FaultKind::RefusedRange;
                return Ok(Self { kind, when: None });
            }
            "stall" => FaultKind::Stall,
            "crash" => FaultKind::Crash,
            "error" => FaultKind::ErrorLine,
            "uncertainty" => FaultKind::Uncertainty,
            _ => return Err(unknown()),
        };
        let (part, sample) = value.split_once(':').ok_or_else(unknown)?;
        let part = match part {
            "ranging" => MarkedPart::Ranging,
            "testing" => MarkedPart::Testing,
            _ => return Err(unknown()),
        };
        let sample = sample.parse().map_err(|_| unknown())?;
        let when = Some((part, sample));
        Ok(Self { kind, when })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_read_from_words() {
        let fault: PtdFault = "crash=testing:3".parse().unwrap();
        assert!(fault.happens(MarkedPart::Testing, 3) && !fault.happens(MarkedPart::Ranging, 3));
        let fault: PtdFault = "slow-start=5".parse().unwrap();
        assert_eq!(fault.kind, FaultKind::SlowStart(Duration::from_secs(5)));
        for wrong in [
            "",
            "crash",
            "crash=3",
            "crash=idle:3",
            "stall=testing:x",
            "refused-range=1",
            "slow-start",
        ] {
            let error = wrong.parse::<PtdFault>().unwrap_err();
            assert!(error.to_string().contains("hint"), "{error}");
        }
    }
}
