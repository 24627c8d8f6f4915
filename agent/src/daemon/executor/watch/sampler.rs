//! Reads the columns of `telemetry.csv` once a second. A failed read gives an empty cell. `finder.rs` finds the
//! columns.

use std::{collections::BTreeMap, path::Path};

use regatta_device_state::device_control::DeviceControl;
use rustix::time::{ClockId, clock_gettime};

use super::{
    column::{Column, HeldState, Kind, Source},
    finder,
    probe::Probe,
    wall_meter::WallMeterFile,
};

/// The values of one line.
#[derive(Debug)]
pub(super) struct Sample {
    /// Time of `CLOCK_MONOTONIC` in nanoseconds.
    pub(super) monotonic_ns: u64,
    /// One cell per column.
    pub(super) cells: Vec<Option<i64>>,
    /// Descriptions of controls that no longer have the value that was set.
    pub(super) moved: Vec<String>,
}

/// The columns of a run.
#[derive(Debug)]
pub(super) struct Sampler {
    columns: Vec<Column>,
    meanings: Vec<(String, Kind)>,
    controls: Vec<(DeviceControl, String, Probe)>,
    root_controls: Vec<(DeviceControl, String)>,
}

impl Sampler {
    /// Finds and opens all sensors below `root`. `wall_meter` is the file of a meter between the wall and the board.
    pub(super) fn open(root: &Path, held: HeldState, wall_meter: Option<&Path>) -> Self {
        let mut columns = finder::columns(root, &held);
        columns.extend(wall_meter.map(|file| Column {
            name: "milliwatts:wall".to_owned(),
            kind: Kind::Wall,
            source: Source::Wall(Box::new(WallMeterFile(file.to_owned()))),
        }));
        let controls = held.files.into_iter();
        Self {
            meanings: columns
                .iter()
                .map(|column| (column.name.clone(), column.kind))
                .collect(),
            columns,
            controls: controls
                .filter_map(|(control, requested, path)| Some((control, requested, Probe::open(&path)?)))
                .collect(),
            root_controls: held.root,
        }
    }

    /// Returns the name and meaning of each column, in order.
    pub(super) fn meanings(&self) -> &[(String, Kind)] {
        &self.meanings
    }

    /// Reads all columns once.
    pub(super) fn take(&mut self, from_helper: BTreeMap<DeviceControl, Option<String>>) -> Sample {
        let time = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let cells = self
            .columns
            .iter_mut()
            .map(|column| column.source.read(&from_helper))
            .collect();
        let own = self
            .controls
            .iter()
            .map(|(control, requested, probe)| (control, requested, probe.text()));
        let helpers = self.root_controls.iter().map(|(control, requested)| {
            let read = from_helper.get(control).cloned().flatten();
            (control, requested, read)
        });
        let moved = own
            .chain(helpers)
            .filter(|(_, requested, read)| read.as_ref() != Some(*requested))
            .map(|(control, requested, read)| {
                let read = read.unwrap_or_else(|| "nothing".to_owned());
                format!("{control} was set to {requested}, and reads {read}")
            })
            .collect();
        Sample {
            monotonic_ns: seconds
                .saturating_mul(1_000_000_000)
                .saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0)),
            cells,
            moved,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn put(root: &Path, path: &str, content: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[test]
    fn columns_are_what_the_board_has_and_cells_what_it_says() {
        let root = tempfile::tempdir().unwrap();
        let at = root.path();
        put(at, "proc/stat", "cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 1 1 1 1\n");
        put(
            at,
            "proc/meminfo",
            "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\n",
        );
        put(
            at,
            "sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq",
            "1190400\n",
        );
        put(at, "sys/class/thermal/thermal_zone0/type", "tj, hot\n");
        put(at, "sys/class/thermal/thermal_zone0/temp", "46218\n");
        put(at, "sys/class/hwmon/hwmon3/name", "ina3221\n");
        for (channel, name) in [(1, "VDD_IN"), (2, "VDD_CPU_GPU_CV")] {
            put(at, &format!("sys/class/hwmon/hwmon3/in{channel}_label"), name);
            put(at, &format!("sys/class/hwmon/hwmon3/in{channel}_input"), "5000\n");
            put(
                at,
                &format!("sys/class/hwmon/hwmon3/curr{channel}_input"),
                "1520\n",
            );
        }
        put(at, "meter", "9900\n");
        let mut sampler = Sampler::open(at, HeldState::default(), Some(&at.join("meter")));
        let names: Vec<&str> = sampler.meanings().iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "cpu_busy_percent",
                "memory_used_kib",
                "cpu_khz:4",
                "millicelsius:tj__hot",
                "milliwatts:VDD_IN",
                "milliwatts:VDD_CPU_GPU_CV",
                "milliwatts:wall"
            ]
        );
        let sample = sampler.take(BTreeMap::new());
        assert_eq!(
            sample.cells,
            [
                Some(20),
                Some(600),
                Some(1_190_400),
                Some(46_218),
                Some(7_600),
                Some(7_600),
                Some(9_900)
            ]
        );
        assert_eq!(sampler.meanings()[4].1, Kind::Rail(true));
        assert_eq!(sampler.meanings()[5].1, Kind::Rail(false), "a part of VDD_IN");
        put(at, "sys/class/hwmon/hwmon3/curr1_input", "not a number\n");
        assert_eq!(sampler.take(BTreeMap::new()).cells[4], None, "a gap, no error");
    }
}
