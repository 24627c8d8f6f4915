//! Finds the columns of `telemetry.csv` by kernel names, once, before LoadGen starts. Only sensors that the machine has
//! become columns. `sampler.rs` reads them during the run.

use std::path::Path;

use regatta_board::Root;
use regatta_device_state::device_control::DeviceControl;

use super::{
    column::{Column, HeldState, Kind, Source},
    probe::Probe,
};

/// Labels of rails that measure the power of the complete board.
const WHOLE_BOARD: [&str; 3] = ["VDD_IN", "POM_5V_IN", "VIN"];

/// Returns all columns that the machine below `root` has, in file order.
pub(super) fn columns(root: &Path, held: &HeldState) -> Vec<Column> {
    let finder = Finder {
        root: Root::new(root),
        columns: Vec::new(),
    };
    let mut columns = finder.find(held);
    only_the_whole(&mut columns);
    columns
}

/// If one rail carries the complete board, excludes the others from the sum, because they are parts of it.
fn only_the_whole(columns: &mut [Column]) {
    let is_whole = |column: &Column| {
        let label = column.name.strip_prefix("milliwatts:");
        label.is_some_and(|label| WHOLE_BOARD.contains(&label))
    };
    if let Some(whole) = columns.iter().position(is_whole) {
        for (index, column) in columns.iter_mut().enumerate() {
            if column.kind == Kind::Rail(true) {
                column.kind = Kind::Rail(index == whole);
            }
        }
    }
}

/// Collects columns.
struct Finder {
    root: Root,
    columns: Vec<Column>,
}

impl Finder {
    fn find(mut self, held: &HeldState) -> Vec<Column> {
        if let Some(probe) = self.probe("proc/stat") {
            self.push("cpu_busy_percent", Kind::Plain, Source::Busy(probe, (0, 0)));
        }
        if let Some(probe) = self.probe("proc/meminfo") {
            self.push("memory_used_kib", Kind::Plain, Source::Memory(probe));
        }
        self.clocks(held);
        self.temperatures();
        self.monitors();
        self.old_rails();
        self.cooling();
        self.columns
    }

    fn clocks(&mut self, held: &HeldState) {
        let lock_of = |control: DeviceControl| {
            let set = held.files.iter().find(|(set, ..)| *set == control);
            set.and_then(|(_, value, _)| value.parse().ok())
        };
        for policy in self.root.below("sys/devices/system/cpu/cpufreq", "policy") {
            let number = policy.rsplit("policy").next().unwrap_or_default().to_owned();
            let lock = number
                .parse()
                .ok()
                .filter(|_| held.cpu)
                .and_then(|n| lock_of(DeviceControl::CpuMin(n)));
            let kind = lock.map_or(Kind::Plain, Kind::Locked);
            self.file(
                format!("cpu_khz:{number}"),
                kind,
                &format!("{policy}/scaling_cur_freq"),
            );
        }
        if let Some(device) = regatta_board::gpu_device(&self.root) {
            let lock = lock_of(DeviceControl::GpuMin).filter(|_| held.gpu);
            let kind = lock.map_or(Kind::Plain, Kind::Locked);
            let file = format!("sys/class/devfreq/{device}/cur_freq");
            self.file("gpu_hz".to_owned(), kind, &file);
        }
        if held
            .root
            .iter()
            .any(|(control, _)| *control == DeviceControl::MemoryRate)
        {
            self.push(
                "memory_hz",
                Kind::Plain,
                Source::Helper(DeviceControl::MemoryRate),
            );
        }
    }

    fn temperatures(&mut self) {
        for zone in self.root.below("sys/class/thermal", "thermal_zone") {
            let name = self.root.text(&format!("{zone}/type"));
            let name = format!("millicelsius:{}", label(&name.unwrap_or_default()));
            self.file(name, Kind::Temperature, &format!("{zone}/temp"));
        }
    }

    /// Adds rails, fans and over-current counters.
    fn monitors(&mut self) {
        for monitor in self.root.below("sys/class/hwmon", "hwmon") {
            let name = self.root.text(&format!("{monitor}/name")).unwrap_or_default();
            if name.starts_with("ina") {
                (1..=3).for_each(|channel| self.rail(&monitor, &name, channel));
            }
            if name == "soctherm_oc" {
                for counter in self.root.below(&monitor, "oc") {
                    let file = counter.rsplit('/').next().unwrap_or_default();
                    if let Some(which) = file.strip_suffix("_event_cnt") {
                        self.file(format!("over_current_events:{which}"), Kind::Rise, &counter);
                    }
                }
            }
            for (file, what) in [("pwm1", "pwm"), ("fan1_input", "rpm"), ("rpm", "rpm")] {
                self.file(
                    format!("{what}:{}", label(&name)),
                    Kind::Plain,
                    &format!("{monitor}/{file}"),
                );
            }
        }
    }

    fn rail(&mut self, monitor: &str, name: &str, channel: u8) {
        let label_text = self.root.text(&format!("{monitor}/in{channel}_label"));
        // A single-channel monitor needs no label. A channel of a three-channel monitor without a label measures
        // nothing.
        let label_text =
            label_text.or_else(|| (channel == 1 && !name.starts_with("ina3221")).then(|| name.to_owned()));
        let Some(label_text) = label_text.filter(|label_text| label_text != "NC") else {
            return;
        };
        let column = format!("milliwatts:{}", label(&label_text));
        let probe = |file: String| self.probe(&format!("{monitor}/{file}"));
        if let Some(power) = probe(format!("power{channel}_input")) {
            self.push(&column, Kind::Rail(true), Source::Thousandth(power));
        } else if let (Some(volts), Some(amperes)) = (
            probe(format!("in{channel}_input")),
            probe(format!("curr{channel}_input")),
        ) {
            self.push(&column, Kind::Rail(true), Source::Product(volts, amperes));
        }
    }

    /// Adds the rails of JetPack 4, which are in another directory.
    fn old_rails(&mut self) {
        for device in self.root.below("sys/bus/iio/devices", "iio:device") {
            for channel in 0..=2 {
                let Some(name) = self.root.text(&format!("{device}/rail_name_{channel}")) else {
                    continue;
                };
                let file = format!("{device}/in_power{channel}_input");
                self.file(format!("milliwatts:{}", label(&name)), Kind::Rail(true), &file);
            }
        }
    }

    /// Adds cooling devices that throttle the board. Fans and `intel_powerclamp` are not included.
    fn cooling(&mut self) {
        for device in self.root.below("sys/class/thermal", "cooling_device") {
            let kind = self.root.text(&format!("{device}/type")).unwrap_or_default();
            if !kind.contains("fan") && kind != "intel_powerclamp" {
                let number = device.rsplit("cooling_device").next().unwrap_or_default();
                let name = format!("cooling:{}:{number}", label(&kind));
                self.file(name, Kind::Rise, &format!("{device}/cur_state"));
            }
        }
    }

    fn file(&mut self, name: String, kind: Kind, path: &str) {
        if let Some(probe) = self.probe(path) {
            self.push(&name, kind, Source::File(probe));
        }
    }

    fn probe(&self, path: &str) -> Option<Probe> {
        Probe::open(&self.root.path(path))
    }

    fn push(&mut self, name: &str, kind: Kind, source: Source) {
        self.columns.push(Column {
            name: name.to_owned(),
            kind,
            source,
        });
    }
}

/// Returns a kernel name as part of a column name: other characters than letters, digits and `_-.+` become `_`.
fn label(label_text: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "_-.+".contains(c) {
            c
        } else {
            '_'
        }
    };
    label_text.chars().map(plain).collect()
}
