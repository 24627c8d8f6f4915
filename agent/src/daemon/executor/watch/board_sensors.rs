//! The sensors that each heartbeat reports: the hottest thermal zone and the board's power. They are opened once, as those of
//! `telemetry.csv`, because a heartbeat must cost little.

use std::{collections::BTreeMap, path::Path};

use regatta_wire::message::BoardReadings;

use super::{
    column::{Column, HeldState, Kind},
    finder,
};

/// A board's sensors of temperature and power, as open files.
#[derive(Debug)]
pub(crate) struct BoardSensors {
    columns: Vec<Column>,
}

impl BoardSensors {
    /// Opens the sensors below `root`.
    pub(crate) fn open(root: &Path) -> Self {
        let mut columns = finder::columns(root, &HeldState::default());
        columns.retain(|column| matches!(column.kind, Kind::Temperature | Kind::Rail(true)));
        Self { columns }
    }

    /// Reads the sensors.
    pub(crate) fn read(&mut self) -> BoardReadings {
        let mut readings = BoardReadings::default();
        for column in &mut self.columns {
            let Some(value) = column.source.read(&BTreeMap::new()) else {
                continue;
            };
            if column.kind == Kind::Temperature {
                let hottest = readings.hottest_millicelsius;
                readings.hottest_millicelsius = Some(hottest.map_or(value, |hottest| hottest.max(value)));
            } else if let Ok(milliwatts) = u64::try_from(value) {
                readings.milliwatts = Some(readings.milliwatts.unwrap_or(0).saturating_add(milliwatts));
            }
        }
        readings
    }
}

#[cfg(test)]
mod tests {
    use regatta_test_support::settable_board::{put, settable_orin};

    use super::*;

    #[test]
    fn the_hottest_zone_and_the_whole_boards_rail_are_read() {
        let root = settable_orin();
        put(root.path(), "sys/class/thermal/thermal_zone0/temp", "71250\n");
        let mut sensors = BoardSensors::open(root.path());
        let readings = sensors.read();
        assert_eq!(readings.hottest_millicelsius, Some(71_250));
        put(root.path(), "sys/class/thermal/thermal_zone0/temp", "80000\n");
        assert_eq!(sensors.read().hottest_millicelsius, Some(80_000));
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(BoardSensors::open(empty.path()).read(), BoardReadings::default());
    }
}
