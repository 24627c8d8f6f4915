//! Which of the chip's units computed the differing responses, where the audit's run noted it beside its logs.

use std::{
    io::{self, BufReader},
    path::Path,
};

use regatta_types::response_units::{RESPONSE_UNITS, ResponseUnits};

use regatta_fsutil::regular_file;

/// A unit's part in a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitShare {
    /// Its name; `None` for responses of which no unit was noted.
    pub unit: Option<String>,
    /// Differing responses that it computed.
    pub differing: u64,
    /// Compared responses that it computed.
    pub compared: u64,
}

/// Units' shares while the audit's log is read.
#[derive(Default)]
pub(super) struct Units {
    noted: Option<ResponseUnits>,
    pub(super) shares: Vec<UnitShare>,
    /// Why the notes cannot be used.
    pub(super) fault: Option<String>,
}

impl Units {
    /// The notes of the run whose accuracy log this is.
    pub(super) fn beside(log: &Path) -> Self {
        match regular_file::open(&log.with_file_name(RESPONSE_UNITS)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::default(),
            Err(error) => Self::unusable(&error),
            Ok(file) => match ResponseUnits::read(BufReader::new(file)) {
                Err(error) => Self::unusable(&error),
                Ok(noted) => Self {
                    noted: Some(noted),
                    ..Self::default()
                },
            },
        }
    }

    fn unusable(error: &dyn std::error::Error) -> Self {
        Self {
            fault: Some(error.to_string()),
            ..Self::default()
        }
    }

    /// Counts a compared response.
    pub(super) fn count(&mut self, seq_id: u64, differs: bool) {
        let Some(noted) = &self.noted else { return };
        let unit = noted.unit(seq_id);
        let known = self.shares.iter().position(|share| share.unit.as_deref() == unit);
        let index = known.unwrap_or_else(|| {
            self.shares.push(UnitShare {
                unit: unit.map(str::to_owned),
                differing: 0,
                compared: 0,
            });
            self.shares.len() - 1
        });
        if let Some(share) = self.shares.get_mut(index) {
            share.compared += 1;
            share.differing += u64::from(differs);
        }
    }
}
