//! Where the knobs of a board lie, which values they take, and how they are read and written. All files and both programs
//! that it starts (`nvpmodel`, `systemctl`) are named here; none comes from outside. Decides no order and undoes nothing.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{
    knob::Knob,
    wish::{PowerMode, Rate},
};

/// JetPack 5 and later turn the fan by a service.
const FAN_SERVICE: &str = "nvfancontrol.service";
/// JetPack 4's fan.
const OLD_FAN: &str = "sys/devices/pwm-fan";
/// The memory clock as the boot processor's firmware holds it; for root alone.
const MEMORY: &str = "sys/kernel/debug/bpmp/debug/clk/emc";
/// Upper bounds of clocks that have no directory of their own, since JetPack 5.
const CAPS: &str = "sys/kernel/nvpmodel_clk_cap";
/// Upper bound of the memory clock in JetPack 4.
const OLD_MEMORY_CAP: &str = "sys/kernel/nvpmodel_emc_cap/emc_iso_cap";
/// Where nvpmodel keeps its mode over a reboot.
const POWER_MODE: &str = "var/lib/nvpmodel/status";
/// nvpmodel and systemctl answer within seconds.
const PROGRAM_PATIENCE: Duration = Duration::from_secs(60);

/// The knobs below a root directory: `/`, or a made-up one in tests.
#[derive(Debug, Clone)]
pub struct Board {
    root: PathBuf,
}

impl Board {
    /// Below `root`.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The file that a knob is, where it is one.
    #[must_use]
    pub fn path(&self, knob: Knob) -> Option<PathBuf> {
        Some(self.root.join(self.file(knob)?))
    }

    /// The kernel's boot id.
    #[must_use]
    pub fn boot_id(&self) -> Option<String> {
        self.text("proc/sys/kernel/random/boot_id")
    }

    /// What a knob is at; `None` where there is none, or it cannot be read.
    #[must_use]
    pub fn read(&self, knob: Knob) -> Option<String> {
        match knob {
            Knob::PowerMode => {
                let status = self.text(POWER_MODE)?;
                let words = status.split_ascii_whitespace();
                let id = words.filter_map(|word| word.strip_prefix("pmode:")).next()?;
                Some(id.parse::<u32>().ok()?.to_string())
            }
            Knob::FanControl if self.has_fan_service() => self.ask_systemctl("is-active"),
            _ => self.text(&self.file(knob)?).filter(|value| is_word(value)),
        }
    }

    /// Every knob that the board has, with what it is at.
    #[must_use]
    pub fn read_all(&self) -> BTreeMap<Knob, String> {
        let mut knobs = vec![
            Knob::FanControl,
            Knob::FanSpeed,
            Knob::PowerMode,
            Knob::GpuMax,
            Knob::GpuMin,
            Knob::MemoryMax,
            Knob::MemoryLock,
            Knob::MemoryRate,
        ];
        for policy in self.policies() {
            knobs.extend([Knob::CpuMax(policy), Knob::CpuMin(policy)]);
        }
        knobs.extend(
            self.numbered("sys/devices/system/cpu", "cpu")
                .into_iter()
                .map(Knob::Core),
        );
        knobs.extend(self.dla_cores().into_iter().map(Knob::DlaMax));
        knobs
            .into_iter()
            .filter_map(|knob| Some((knob, self.read(knob)?)))
            .collect()
    }

    /// The CPU clock policies, by number.
    #[must_use]
    pub fn policies(&self) -> Vec<u32> {
        self.numbered("sys/devices/system/cpu/cpufreq", "policy")
    }

    /// The DLA cores whose clock has a bound.
    #[must_use]
    pub fn dla_cores(&self) -> Vec<u32> {
        (0..4)
            .filter(|core| self.root.join(format!("{CAPS}/dla{core}_core")).exists())
            .collect()
    }

    /// What the fan's control says when it leaves the fan alone.
    #[must_use]
    pub fn fan_control_off(&self) -> &'static str {
        if self.has_fan_service() { "inactive" } else { "0" }
    }

    /// Writes a knob. That it took is for [`Self::read`] to tell.
    ///
    /// # Errors
    /// When the board has no such knob, or it refuses.
    pub fn write(&self, knob: Knob, value: &str) -> io::Result<()> {
        match knob {
            Knob::PowerMode => {
                let conf = self.root.join("etc/nvpmodel.conf");
                let mut nvpmodel = Command::new(self.root.join("usr/sbin/nvpmodel"));
                // Without -f it takes the file of the last call that failed.
                nvpmodel.arg("-f").arg(conf).arg("-m").arg(value);
                // It ends with 255 when it has switched cores off, though that worked.
                run(&mut nvpmodel).map(drop)
            }
            Knob::FanControl if self.has_fan_service() => {
                let verb = if value == "active" { "start" } else { "stop" };
                self.ask_systemctl(verb);
                Ok(())
            }
            _ => {
                let missing = || io::Error::new(io::ErrorKind::NotFound, "this board has no such knob");
                let file = self.root.join(self.file(knob).ok_or_else(missing)?);
                // Never created: a knob is the kernel's.
                let mut file = OpenOptions::new().write(true).truncate(true).open(file)?;
                file.write_all(format!("{value}\n").as_bytes())
            }
        }
    }

    /// Brings nvpmodel's mode, the one knob that outlives a reboot, to the disk: after a power cut the board boots with it.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn flush_power_mode(&self) -> io::Result<()> {
        let status = self.root.join(POWER_MODE);
        match File::open(&status) {
            Ok(file) => file.sync_all()?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e),
        }
        // It may have been written beside and renamed.
        status
            .parent()
            .map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    }

    /// A power mode's number.
    ///
    /// # Errors
    /// A sentence when nvpmodel.conf has no such mode.
    pub fn power_mode(&self, wished: &PowerMode) -> Result<u32, String> {
        let text = self.text("etc/nvpmodel.conf").unwrap_or_default();
        let modes: Vec<(u32, String)> = text.lines().filter_map(mode_of_line).collect();
        if modes.is_empty() {
            return Err("this board has no nvpmodel.conf with power modes".to_owned());
        }
        let by_name = |wanted: &str| modes.iter().find(|(_, name)| name.eq_ignore_ascii_case(wanted));
        let found = match wished {
            PowerMode::Id(id) => modes.iter().find(|(known, _)| known == id),
            PowerMode::Name(name) if name.eq_ignore_ascii_case("MAXN") => {
                by_name("MAXN_SUPER").or_else(|| by_name("MAXN"))
            }
            PowerMode::Name(name) => by_name(name),
        };
        let known = || {
            modes
                .iter()
                .map(|(id, name)| format!("{name} ({id})"))
                .collect::<Vec<_>>()
        };
        found.map(|(id, _)| *id).ok_or_else(|| {
            format!(
                "nvpmodel.conf has no mode {wished}; it has {}",
                known().join(", ")
            )
        })
    }

    /// The value in a clock's own unit for a wished rate.
    ///
    /// # Errors
    /// A sentence when the board has no such clock, or the clock no such rate.
    pub fn clock_value(&self, knob: Knob, rate: Rate) -> Result<String, String> {
        let (unit, rates, highest) = self
            .rates(knob)
            .ok_or_else(|| format!("this board has no {knob}, or does not tell which clocks it takes"))?;
        let value = match rate {
            Rate::Highest => highest,
            Rate::Hz(hz) => hz / unit,
        };
        if value == 0 || value > highest || !(rates.is_empty() || rates.contains(&value)) {
            let near = rates
                .iter()
                .min_by_key(|known| known.abs_diff(value))
                .unwrap_or(&highest);
            return Err(format!("{knob} has no clock of {value}; the nearest is {near}"));
        }
        Ok(value.to_string())
    }

    /// A clock's unit in Hz, its steps (empty where it takes any) and its highest.
    fn rates(&self, knob: Knob) -> Option<(u64, Vec<u64>, u64)> {
        let number = |file: &str| self.text(file)?.parse::<u64>().ok();
        let list = |file: &str| -> Vec<u64> {
            let text = self.text(file).unwrap_or_default();
            text.split_ascii_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect()
        };
        match knob {
            Knob::CpuMax(policy) | Knob::CpuMin(policy) => {
                let at = format!("sys/devices/system/cpu/cpufreq/policy{policy}");
                let highest = number(&format!("{at}/cpuinfo_max_freq"))?;
                Some((
                    1_000,
                    list(&format!("{at}/scaling_available_frequencies")),
                    highest,
                ))
            }
            Knob::GpuMax | Knob::GpuMin => {
                let rates = list(&format!("{}/available_frequencies", self.gpu()?));
                let highest = *rates.iter().max()?;
                Some((1, rates, highest))
            }
            Knob::MemoryMax | Knob::MemoryRate => {
                Some((1, Vec::new(), number(&format!("{MEMORY}/max_rate"))?))
            }
            Knob::DlaMax(core) => {
                let clock = format!("sys/kernel/debug/bpmp/debug/clk/nafll_dla{core}_core/max_rate");
                Some((1, Vec::new(), number(&clock)?))
            }
            _ => None,
        }
    }

    /// Where a knob's file lies.
    fn file(&self, knob: Knob) -> Option<String> {
        let policy =
            |number: u32, file: &str| format!("sys/devices/system/cpu/cpufreq/policy{number}/{file}");
        let file = match knob {
            Knob::PowerMode => return None,
            Knob::FanControl => format!("{OLD_FAN}/temp_control"),
            Knob::FanSpeed => self.fan()?,
            Knob::Core(number) => format!("sys/devices/system/cpu/cpu{number}/online"),
            Knob::CpuMax(number) => policy(number, "scaling_max_freq"),
            Knob::CpuMin(number) => policy(number, "scaling_min_freq"),
            Knob::GpuMax => format!("{}/max_freq", self.gpu()?),
            Knob::GpuMin => format!("{}/min_freq", self.gpu()?),
            Knob::MemoryMax if self.exists(&format!("{CAPS}/emc")) => format!("{CAPS}/emc"),
            Knob::MemoryMax => OLD_MEMORY_CAP.to_owned(),
            Knob::MemoryLock => format!("{MEMORY}/mrq_rate_locked"),
            Knob::MemoryRate => format!("{MEMORY}/rate"),
            Knob::DlaMax(core) => format!("{CAPS}/dla{core}_core"),
        };
        self.exists(&file).then_some(file)
    }

    fn fan(&self) -> Option<String> {
        let monitors = self.numbered("sys/class/hwmon", "hwmon").into_iter();
        monitors
            .map(|number| format!("sys/class/hwmon/hwmon{number}"))
            .find(|monitor| self.text(&format!("{monitor}/name")).as_deref() == Some("pwmfan"))
            .map(|monitor| format!("{monitor}/pwm1"))
            .or_else(|| Some(format!("{OLD_FAN}/target_pwm")))
    }

    /// The GPU is called after its address and chip (`17000000.ga10b`, `17000000.gpu`), or its clock (`gpu-gpc-0`).
    fn gpu(&self) -> Option<String> {
        let chips = [".gpu", ".ga10b", ".gv11b", ".gp10b", ".gm20b"];
        let mut names: Vec<String> = names(&self.root.join("sys/class/devfreq"));
        names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        let is_gpu = |name: &String| name.starts_with("gpu") || chips.iter().any(|end| name.ends_with(end));
        names
            .into_iter()
            .find(is_gpu)
            .map(|name| format!("sys/class/devfreq/{name}"))
    }

    fn has_fan_service(&self) -> bool {
        ["lib/systemd/system", "etc/systemd/system"]
            .iter()
            .any(|directory| self.exists(&format!("{directory}/{FAN_SERVICE}")))
    }

    fn ask_systemctl(&self, verb: &str) -> Option<String> {
        let mut systemctl = Command::new(self.root.join("usr/bin/systemctl"));
        let said = run(systemctl.args([verb, FAN_SERVICE])).ok()?;
        said.split_ascii_whitespace()
            .next()
            .map(str::to_owned)
            .filter(|word| is_word(word))
    }

    /// The numbers behind `prefix` in a directory, lowest first.
    fn numbered(&self, directory: &str, prefix: &str) -> Vec<u32> {
        let names = names(&self.root.join(directory)).into_iter();
        let mut numbers: Vec<u32> = names
            .filter_map(|name| name.strip_prefix(prefix)?.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers
    }

    fn exists(&self, relative: &str) -> bool {
        self.root.join(relative).exists()
    }

    fn text(&self, relative: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(relative)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

/// `< POWER_MODEL ID=0 NAME=MAXN >`
fn mode_of_line(line: &str) -> Option<(u32, String)> {
    let words = line
        .trim()
        .strip_prefix('<')?
        .trim()
        .strip_prefix("POWER_MODEL")?;
    let value = |key: &str| {
        words
            .split_ascii_whitespace()
            .find_map(|word| word.strip_prefix(key))
    };
    let name = value("NAME=").unwrap_or_default().trim_end_matches('>');
    Some((value("ID=")?.parse().ok()?, name.to_owned()))
}

/// What goes over the wire and into the journal: one word.
fn is_word(value: &str) -> bool {
    value.len() <= 32 && value != "-" && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Runs a program without input and environment, for so long and no longer; what it says on standard output.
fn run(command: &mut Command) -> io::Result<String> {
    let mut child = command
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let begin = Instant::now();
    while child.try_wait()?.is_none() {
        if begin.elapsed() > PROGRAM_PATIENCE {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the program did not end"));
        }
        sleep(Duration::from_millis(5));
    }
    Ok(String::from_utf8_lossy(&child.wait_with_output()?.stdout).into_owned())
}
