//! The controls of a board: their files, the values that they take, and how to read and write them. This file names every
//! path and both programs that the helper starts (`nvpmodel`, `systemctl`); none comes from outside. It does not order
//! changes and does not undo them: [`crate::transaction`] does.

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
    control_error::ControlError,
    device_control::DeviceControl,
    nvpmodel::{self, OfferedMode},
    state_request::{ClockRate, ClockSetting, PowerMode},
};

/// The service that controls the fan in JetPack 5 and later.
const FAN_SERVICE: &str = "nvfancontrol.service";
/// The directory of the fan in JetPack 4.
const OLD_FAN: &str = "sys/devices/pwm-fan";
/// The directory of the memory clock in the boot processor's firmware (BPMP), which only root can read.
pub const MEMORY: &str = "sys/kernel/debug/bpmp/debug/clk/emc";
/// The directory of the upper bounds of clocks that have no separate directory, in JetPack 5 and later.
pub const CAPS: &str = "sys/kernel/nvpmodel_clk_cap";
/// The upper bound of the memory clock in JetPack 4.
pub const OLD_MEMORY_CAP: &str = "sys/kernel/nvpmodel_emc_cap/emc_iso_cap";
/// The file in which nvpmodel keeps its mode across reboots.
pub const POWER_MODE: &str = "var/lib/nvpmodel/status";
/// The time that nvpmodel or systemctl may take; they usually take seconds.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(60);

/// The controls of the board whose file system is below a root directory: `/`, or a simulated one in tests.
#[derive(Debug, Clone)]
pub struct BoardControls {
    root: PathBuf,
}

impl BoardControls {
    /// Creates the controls of the board below `root`. Reads nothing.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the file of a control. `None` when the board does not have the control, and for the power mode.
    #[must_use]
    pub fn path(&self, control: DeviceControl) -> Option<PathBuf> {
        Some(self.root.join(self.file(control)?))
    }

    /// Returns the kernel's boot id.
    #[must_use]
    pub fn boot_id(&self) -> Option<String> {
        self.text("proc/sys/kernel/random/boot_id")
    }

    /// Reads a control's value. `None` when the board does not have the control or it cannot be read.
    #[must_use]
    pub fn read(&self, control: DeviceControl) -> Option<String> {
        match control {
            DeviceControl::PowerMode => Some(nvpmodel::current_mode(&self.text(POWER_MODE)?)?.to_string()),
            DeviceControl::FanControl if self.has_fan_service() => self.run_systemctl("is-active"),
            _ => self.text(&self.file(control)?).filter(|value| is_word(value)),
        }
    }

    /// Reads all controls of the board.
    #[must_use]
    pub fn read_all(&self) -> BTreeMap<DeviceControl, String> {
        let mut controls = vec![
            DeviceControl::FanControl,
            DeviceControl::FanSpeed,
            DeviceControl::PowerMode,
            DeviceControl::GpuMax,
            DeviceControl::GpuMin,
            DeviceControl::MemoryMax,
            DeviceControl::MemoryLock,
            DeviceControl::MemoryRate,
        ];
        for policy in self.policies() {
            controls.extend([DeviceControl::CpuMax(policy), DeviceControl::CpuMin(policy)]);
        }
        controls.extend(
            self.numbered("sys/devices/system/cpu", "cpu")
                .into_iter()
                .map(DeviceControl::Core),
        );
        controls.extend(self.dla_cores().into_iter().map(DeviceControl::DlaMax));
        controls
            .into_iter()
            .filter_map(|control| Some((control, self.read(control)?)))
            .collect()
    }

    /// Returns the numbers of the cpufreq policies.
    #[must_use]
    pub fn policies(&self) -> Vec<u32> {
        self.numbered("sys/devices/system/cpu/cpufreq", "policy")
    }

    /// Returns the numbers of the DLA cores whose clock can be bounded.
    #[must_use]
    pub fn dla_cores(&self) -> Vec<u32> {
        (0..4)
            .filter(|core| self.root.join(format!("{CAPS}/dla{core}_core")).exists())
            .collect()
    }

    /// Returns the value of [`DeviceControl::FanControl`] that switches the automatic fan control off.
    #[must_use]
    pub fn fan_control_off(&self) -> &'static str {
        if self.has_fan_service() { "inactive" } else { "0" }
    }

    /// Writes a control. Success does not mean that the value was accepted: [`Self::read`] it afterwards.
    ///
    /// # Errors
    /// When the board does not have the control, or the file cannot be written.
    pub fn write(&self, control: DeviceControl, value: &str) -> io::Result<()> {
        match control {
            DeviceControl::PowerMode => {
                let conf = self.root.join("etc/nvpmodel.conf");
                let mut nvpmodel = Command::new(self.root.join("usr/sbin/nvpmodel"));
                // Without -f, nvpmodel uses the file of its last failed call.
                nvpmodel.arg("-f").arg(conf).arg("-m").arg(value);
                // nvpmodel exits with 255 when it has switched cores off, although it succeeded.
                run(&mut nvpmodel).map(drop)
            }
            DeviceControl::FanControl if self.has_fan_service() => {
                let verb = if value == "active" { "start" } else { "stop" };
                self.run_systemctl(verb);
                Ok(())
            }
            _ => {
                let missing = || io::Error::new(io::ErrorKind::NotFound, "this board has no such control");
                let file = self.root.join(self.file(control).ok_or_else(missing)?);
                // Never created: the file belongs to the kernel.
                let mut file = OpenOptions::new().write(true).truncate(true).open(file)?;
                file.write_all(format!("{value}\n").as_bytes())
            }
        }
    }

    /// Flushes the file of nvpmodel's mode to disk, so that the board boots with this mode after a power cut. It is the
    /// only control that outlives a reboot.
    ///
    /// # Errors
    /// When the file cannot be flushed.
    pub fn flush_power_mode(&self) -> io::Result<()> {
        let status = self.root.join(POWER_MODE);
        match File::open(&status) {
            Ok(file) => file.sync_all()?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e),
        }
        // nvpmodel may have replaced the file, which also changes the directory.
        status
            .parent()
            .map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    }

    /// Returns the number of a power mode.
    ///
    /// # Errors
    /// An error when nvpmodel.conf does not have the mode.
    pub fn power_mode(&self, requested: &PowerMode) -> Result<u32, ControlError> {
        let text = self.text("etc/nvpmodel.conf").unwrap_or_default();
        let modes = nvpmodel::offered_modes(&text);
        if modes.is_empty() {
            return Err(ControlError::NoPowerModes);
        }
        let name = |mode: &OfferedMode| mode.name.clone().unwrap_or_default();
        let found = match requested {
            PowerMode::Id(id) => modes.iter().find(|mode| mode.id == *id),
            PowerMode::Name(requested) if requested.eq_ignore_ascii_case("MAXN") => {
                nvpmodel::fastest_mode(&modes, |mode| mode.name.as_deref())
            }
            PowerMode::Name(requested) => modes
                .iter()
                .find(|mode| name(mode).eq_ignore_ascii_case(requested)),
        };
        let known = || {
            modes
                .iter()
                .map(|mode| format!("{} ({})", name(mode), mode.id))
                .collect::<Vec<_>>()
        };
        found
            .map(|mode| mode.id)
            .ok_or_else(|| ControlError::UnknownPowerMode {
                requested: requested.clone(),
                known: known(),
            })
    }

    /// Returns the value of a clock's control for a setting, in the control's unit. A fixed rate must be one that the clock supports. An upper bound is
    /// the highest supported rate that is not above it, because published bounds are often between the rates of other JetPacks and modules.
    ///
    /// # Errors
    /// An error when the board does not have the clock, the clock does not support the rate, or all its rates are above the bound.
    pub fn clock_value(&self, control: DeviceControl, setting: ClockSetting) -> Result<String, ControlError> {
        let (unit, rates, highest) = self.rates(control).ok_or(ControlError::NoRates(control))?;
        let requested = match setting.rate() {
            ClockRate::Highest => highest,
            ClockRate::Hz(hz) => hz / unit,
        };
        let supported = |rate: u64| rates.is_empty() || rates.contains(&rate);
        let value = match setting {
            ClockSetting::Cap(_) if rates.is_empty() => Some(requested.min(highest)),
            ClockSetting::Cap(_) => rates.iter().copied().filter(|rate| *rate <= requested).max(),
            ClockSetting::Lock(_) => Some(requested).filter(|rate| *rate <= highest && supported(*rate)),
        };
        match value.filter(|value| *value > 0) {
            Some(value) => Ok(value.to_string()),
            None => Err(ControlError::UnsupportedRate {
                control,
                value: requested,
                nearest: rates
                    .iter()
                    .min_by_key(|known| known.abs_diff(requested))
                    .copied()
                    .unwrap_or(highest),
            }),
        }
    }

    /// Returns a clock's unit in Hz, its supported rates (empty when it takes any) and its highest rate.
    fn rates(&self, control: DeviceControl) -> Option<(u64, Vec<u64>, u64)> {
        let number = |file: &str| self.text(file)?.parse::<u64>().ok();
        let list = |file: &str| -> Vec<u64> {
            let text = self.text(file).unwrap_or_default();
            text.split_ascii_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect()
        };
        match control {
            DeviceControl::CpuMax(policy) | DeviceControl::CpuMin(policy) => {
                let at = format!("sys/devices/system/cpu/cpufreq/policy{policy}");
                let highest = number(&format!("{at}/cpuinfo_max_freq"))?;
                Some((
                    1_000,
                    list(&format!("{at}/scaling_available_frequencies")),
                    highest,
                ))
            }
            DeviceControl::GpuMax | DeviceControl::GpuMin => {
                let rates = list(&format!("{}/available_frequencies", self.gpu()?));
                let highest = *rates.iter().max()?;
                Some((1, rates, highest))
            }
            DeviceControl::MemoryMax | DeviceControl::MemoryRate => {
                Some((1, Vec::new(), number(&format!("{MEMORY}/max_rate"))?))
            }
            DeviceControl::DlaMax(core) => {
                let clock = format!("sys/kernel/debug/bpmp/debug/clk/nafll_dla{core}_core/max_rate");
                Some((1, Vec::new(), number(&clock)?))
            }
            _ => None,
        }
    }

    /// Returns the path of a control's file below the root.
    fn file(&self, control: DeviceControl) -> Option<String> {
        let policy =
            |number: u32, file: &str| format!("sys/devices/system/cpu/cpufreq/policy{number}/{file}");
        let file = match control {
            DeviceControl::PowerMode => return None,
            DeviceControl::FanControl => format!("{OLD_FAN}/temp_control"),
            DeviceControl::FanSpeed => self.fan()?,
            DeviceControl::Core(number) => format!("sys/devices/system/cpu/cpu{number}/online"),
            DeviceControl::CpuMax(number) => policy(number, "scaling_max_freq"),
            DeviceControl::CpuMin(number) => policy(number, "scaling_min_freq"),
            DeviceControl::GpuMax => format!("{}/max_freq", self.gpu()?),
            DeviceControl::GpuMin => format!("{}/min_freq", self.gpu()?),
            DeviceControl::MemoryMax if self.exists(&format!("{CAPS}/emc")) => format!("{CAPS}/emc"),
            DeviceControl::MemoryMax => OLD_MEMORY_CAP.to_owned(),
            DeviceControl::MemoryLock => format!("{MEMORY}/mrq_rate_locked"),
            DeviceControl::MemoryRate => format!("{MEMORY}/rate"),
            DeviceControl::DlaMax(core) => format!("{CAPS}/dla{core}_core"),
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

    /// Returns the GPU's devfreq directory.
    fn gpu(&self) -> Option<String> {
        gpu_device(names(&self.root.join("sys/class/devfreq")))
            .map(|name| format!("sys/class/devfreq/{name}"))
    }

    fn has_fan_service(&self) -> bool {
        ["lib/systemd/system", "etc/systemd/system"]
            .iter()
            .any(|directory| self.exists(&format!("{directory}/{FAN_SERVICE}")))
    }

    fn run_systemctl(&self, verb: &str) -> Option<String> {
        let mut systemctl = Command::new(self.root.join("usr/bin/systemctl"));
        let output = run(systemctl.args([verb, FAN_SERVICE])).ok()?;
        output
            .split_ascii_whitespace()
            .next()
            .map(str::to_owned)
            .filter(|word| is_word(word))
    }

    /// Returns the numbers after `prefix` in a directory's entries, lowest first.
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

/// Returns the GPU among the names below `/sys/class/devfreq`: its address and chip (`17000000.ga10b`, `17000000.gpu`) or its clock
/// (`gpu-gpc-0`). The shortest name comes first, and the alphabet decides between equal lengths.
#[must_use]
pub fn gpu_device(mut names: Vec<String>) -> Option<String> {
    const CHIPS: [&str; 5] = [".gpu", ".ga10b", ".gv11b", ".gp10b", ".gm20b"];
    names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    let is_gpu = |name: &String| name.starts_with("gpu") || CHIPS.iter().any(|end| name.ends_with(end));
    names.into_iter().find(is_gpu)
}

/// Returns whether a value is one word, as protocol and journal require.
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

/// Runs a program without input and environment, and returns its standard output. Kills it after [`PROGRAM_TIMEOUT`].
fn run(command: &mut Command) -> io::Result<String> {
    let mut child = command
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let begin = Instant::now();
    while child.try_wait()?.is_none() {
        if begin.elapsed() > PROGRAM_TIMEOUT {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the program did not end in time",
            ));
        }
        sleep(Duration::from_millis(5));
    }
    Ok(String::from_utf8_lossy(&child.wait_with_output()?.stdout).into_owned())
}
