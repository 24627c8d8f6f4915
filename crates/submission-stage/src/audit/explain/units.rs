//! The units of the chip that computed the differing responses, if the audit's run recorded them beside its logs.

use std::{
    io::{self, BufReader},
    path::Path,
};

use regatta_types::response_units::{RESPONSE_UNITS, ResponseUnits};

use regatta_fsutil::regular_file;

/// The share of a unit in a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitShare {
    /// The unit's name, or `None` for responses without a recorded unit.
    pub unit: Option<String>,
    /// The number of differing responses that it computed.
    pub differing: u64,
    /// The number of compared responses that it computed.
    pub compared: u64,
}

/// The shares of units, counted while the audit's log is read.
#[derive(Default)]
pub(super) struct Units {
    noted: Option<ResponseUnits>,
    pub(super) shares: Vec<UnitShare>,
    /// The reason why the record cannot be used.
    pub(super) fault: Option<String>,
}

impl Units {
    /// Reads the record beside an accuracy log.
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
