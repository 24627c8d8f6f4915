//! The columns of `telemetry.csv`: found once, before LoadGen starts, by the names that the kernel gives, and read once a
//! second. What a machine does not have is no column; what it refuses to tell for once is an empty cell.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use regatta_state::knob::Knob;
use rustix::time::{ClockId, clock_gettime};

use super::probe::Probe;
use crate::facts::root::Root;

/// Rails that carry all of a board's power, by label.
const WHOLE_BOARD: [&str; 3] = ["VDD_IN", "POM_5V_IN", "VIN"];

/// What was set, for comparison.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Knobs that this user can read, what they were set to, and where they lie.
    pub(super) files: Vec<(Knob, String, PathBuf)>,
    /// Knobs that the helper reads, and what they were set to.
    pub(super) root: Vec<(Knob, String)>,
    /// Whether the CPU clocks are locked.
    pub(super) cpu: bool,
    /// Whether the GPU's clock is locked.
    pub(super) gpu: bool,
}

/// What a column means, for whoever looks for trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing beyond its number.
    Plain,
    /// Thousandths of a degree.
    Temperature,
    /// Milliwatts; whether it counts towards the board's power.
    Rail(bool),
    /// The level of a cooling device that slows something down, or a counter of over-current: any rise is trouble.
    Rise,
    /// A clock that was locked at so much.
    Locked(i64),
}

#[derive(Debug)]
enum Source {
    File(Probe),
    /// Millivolts and milliamperes.
    Product(Probe, Probe),
    /// A file in thousandths of the column's unit.
    Thousandth(Probe),
    /// `/proc/stat`, with busy and total ticks of the last look.
    Busy(Probe, (u64, u64)),
    /// `/proc/meminfo`.
    Memory(Probe),
    /// The memory clock, from the helper.
    Helper(Knob),
}

#[derive(Debug)]
struct Column {
    name: String,
    kind: Kind,
    source: Source,
}

/// One line's values.
#[derive(Debug)]
pub(super) struct Sample {
    /// `CLOCK_MONOTONIC`.
    pub(super) monotonic_ns: u64,
    /// One for each column.
    pub(super) cells: Vec<Option<i64>>,
    /// Knobs that are no longer at what they were set to, in words.
    pub(super) moved: Vec<String>,
}

/// The columns of one run.
#[derive(Debug)]
pub(super) struct Sampler {
    columns: Vec<Column>,
    meanings: Vec<(String, Kind)>,
    knobs: Vec<(Knob, String, Probe)>,
    root_knobs: Vec<(Knob, String)>,
}

impl Sampler {
    /// Finds and opens everything below `root`.
    pub(super) fn open(root: &Path, held: Held) -> Self {
        let mut columns = Finder {
            root: Root::new(root),
            columns: Vec::new(),
        }
        .find(&held);
        only_the_whole(&mut columns);
        let knobs = held.files.into_iter();
        Self {
            meanings: columns
                .iter()
                .map(|column| (column.name.clone(), column.kind))
                .collect(),
            columns,
            knobs: knobs
                .filter_map(|(knob, wanted, path)| Some((knob, wanted, Probe::open(&path)?)))
                .collect(),
            root_knobs: held.root,
        }
    }

    /// What each column is called and means, in order.
    pub(super) fn meanings(&self) -> &[(String, Kind)] {
        &self.meanings
    }

    /// Reads everything once.
    pub(super) fn take(&mut self, from_helper: BTreeMap<Knob, Option<String>>) -> Sample {
        let time = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let cells = self
            .columns
            .iter_mut()
            .map(|column| column.source.read(&from_helper))
            .collect();
        let own = self
            .knobs
            .iter()
            .map(|(knob, wanted, probe)| (knob, wanted, probe.text()));
        let helpers = self.root_knobs.iter().map(|(knob, wanted)| {
            let read = from_helper.get(knob).cloned().flatten();
            (knob, wanted, read)
        });
        let moved = own
            .chain(helpers)
            .filter(|(_, wanted, read)| read.as_ref() != Some(*wanted))
            .map(|(knob, wanted, read)| {
                let read = read.unwrap_or_else(|| "nothing".to_owned());
                format!("{knob} was set to {wanted}, and reads {read}")
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

/// Where one rail carries the whole board, the others are parts of it.
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

impl Source {
    fn read(&mut self, from_helper: &BTreeMap<Knob, Option<String>>) -> Option<i64> {
        match self {
            Self::File(probe) => probe.number(),
            Self::Product(volts, amperes) => Some(volts.number()?.saturating_mul(amperes.number()?) / 1_000),
            Self::Thousandth(probe) => Some(probe.number()? / 1_000),
            Self::Busy(probe, before) => {
                let now = ticks(&probe.text()?)?;
                let busy = now.0.saturating_sub(before.0).saturating_mul(100);
                let share = busy.checked_div(now.1.saturating_sub(before.1));
                *before = now;
                i64::try_from(share?).ok()
            }
            Self::Memory(probe) => {
                let text = probe.text()?;
                let kib = |key: &str| {
                    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
                    line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()
                };
                Some(kib("MemTotal:")? - kib("MemAvailable:")?)
            }
            Self::Helper(knob) => from_helper.get(knob)?.as_ref()?.parse().ok(),
        }
    }
}

/// Busy and total ticks of all processors, from `cpu  user nice system idle iowait irq softirq steal ...`.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .take(8)
        .map_while(|word| word.parse().ok())
        .collect();
    let total: u64 = ticks.iter().sum();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((total.saturating_sub(idle), total))
}

/// Looks for columns.
struct Finder {
    root: Root,
    columns: Vec<Column>,
}

impl Finder {
    fn find(mut self, held: &Held) -> Vec<Column> {
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

    fn clocks(&mut self, held: &Held) {
        let lock_of = |wanted: Knob| {
            let set = held.files.iter().find(|(knob, ..)| *knob == wanted);
            set.and_then(|(_, value, _)| value.parse().ok())
        };
        for policy in self.root.below("sys/devices/system/cpu/cpufreq", "policy") {
            let number = policy.rsplit("policy").next().unwrap_or_default().to_owned();
            let lock = number
                .parse()
                .ok()
                .filter(|_| held.cpu)
                .and_then(|n| lock_of(Knob::CpuMin(n)));
            let kind = lock.map_or(Kind::Plain, Kind::Locked);
            self.file(
                format!("cpu_khz:{number}"),
                kind,
                &format!("{policy}/scaling_cur_freq"),
            );
        }
        if let Some(gpu) = crate::facts::power::Power::read(&self.root).gpu {
            let lock = lock_of(Knob::GpuMin).filter(|_| held.gpu);
            let kind = lock.map_or(Kind::Plain, Kind::Locked);
            let file = format!("sys/class/devfreq/{}/cur_freq", gpu.device);
            self.file("gpu_hz".to_owned(), kind, &file);
        }
        if held.root.iter().any(|(knob, _)| *knob == Knob::MemoryRate) {
            self.push("memory_hz", Kind::Plain, Source::Helper(Knob::MemoryRate));
        }
    }

    fn temperatures(&mut self) {
        for zone in self.root.below("sys/class/thermal", "thermal_zone") {
            let name = self.root.text(&format!("{zone}/type"));
            let name = format!("millicelsius:{}", label(&name.unwrap_or_default()));
            self.file(name, Kind::Temperature, &format!("{zone}/temp"));
        }
    }

    /// Rails, fans and over-current counters.
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
        let given = self.root.text(&format!("{monitor}/in{channel}_label"));
        // Monitors of one channel need no label; of three, a channel without one measures nothing.
        let given = given.or_else(|| (channel == 1 && !name.starts_with("ina3221")).then(|| name.to_owned()));
        let Some(given) = given.filter(|given| given != "NC") else {
            return;
        };
        let column = format!("milliwatts:{}", label(&given));
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

    /// JetPack 4 has its rails elsewhere.
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

    /// What slows the board down when it gets too hot or draws too much. A fan is no such thing.
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

/// A name of the kernel's as part of a column's: no comma, no quote, no line's end.
fn label(given: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "_-.+".contains(c) {
            c
        } else {
            '_'
        }
    };
    given.chars().map(plain).collect()
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
        let mut sampler = Sampler::open(at, Held::default());
        let names: Vec<&str> = sampler.meanings().iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "cpu_busy_percent",
                "memory_used_kib",
                "cpu_khz:4",
                "millicelsius:tj__hot",
                "milliwatts:VDD_IN",
                "milliwatts:VDD_CPU_GPU_CV"
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
                Some(7_600)
            ]
        );
        assert_eq!(sampler.meanings()[4].1, Kind::Rail(true));
        assert_eq!(sampler.meanings()[5].1, Kind::Rail(false), "a part of VDD_IN");
        put(at, "sys/class/hwmon/hwmon3/curr1_input", "not a number\n");
        assert_eq!(sampler.take(BTreeMap::new()).cells[4], None, "a gap, no error");
    }
}
