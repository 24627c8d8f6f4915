//! What the machine is and in what state, from the kernel's own files. Needs no rights and no library; what a machine
//! does not tell stays empty. Jetson's power modes, rails and engine clocks are not read here.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_rules::documents::DeviceFacts;

/// Reads facts below a root directory: `/` on a device, a made-up tree in tests.
#[derive(Debug, Clone)]
pub(crate) struct FactsReader {
    root: PathBuf,
}

impl FactsReader {
    /// Of this machine.
    pub(crate) fn of_this_machine() -> Self {
        Self {
            root: PathBuf::from("/"),
        }
    }

    /// The facts as they are now.
    pub(crate) fn read(&self) -> DeviceFacts {
        DeviceFacts {
            hostname: self.text("proc/sys/kernel/hostname").unwrap_or_default(),
            model: self.model(),
            arch: std::env::consts::ARCH.to_owned(),
            kernel: self.text("proc/sys/kernel/osrelease").unwrap_or_default(),
            os: self.operating_system(),
            cpus: self.cpus(),
            memory_bytes: self.memory_bytes(),
            cpu_governor: self.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            cpu_khz: self.number("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"),
            hottest_millicelsius: self.hottest_millicelsius(),
            load_average: self.load_average(),
        }
    }

    /// The kernel's boot id, which changes with every boot.
    pub(crate) fn boot_id(&self) -> Option<String> {
        self.text("proc/sys/kernel/random/boot_id")
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// A file's text without white space and the device tree's closing NUL; `None` when it is missing or empty.
    fn text(&self, relative: &str) -> Option<String> {
        let bytes = fs::read(self.path(relative)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn number<T: std::str::FromStr>(&self, relative: &str) -> Option<T> {
        self.text(relative)?.parse().ok()
    }

    /// The device tree's model on boards, the DMI product on PCs.
    fn model(&self) -> String {
        [
            "proc/device-tree/model",
            "sys/firmware/devicetree/base/model",
            "sys/class/dmi/id/product_name",
        ]
        .into_iter()
        .find_map(|file| self.text(file))
        .unwrap_or_default()
    }

    fn operating_system(&self) -> String {
        let text = self
            .text("etc/os-release")
            .or_else(|| self.text("usr/lib/os-release"))
            .unwrap_or_default();
        text.lines()
            .find_map(|line| line.strip_prefix("PRETTY_NAME="))
            .map(|value| value.trim_matches(['"', '\'']).to_owned())
            .unwrap_or_default()
    }

    /// CPUs that are online now: a power mode may have switched some off.
    fn cpus(&self) -> u32 {
        self.text("sys/devices/system/cpu/online")
            .map_or(0, |list| count_cpu_list(&list))
    }

    fn memory_bytes(&self) -> u64 {
        let text = self.text("proc/meminfo").unwrap_or_default();
        let kilobytes = text.lines().find_map(|line| {
            line.strip_prefix("MemTotal:")?
                .trim()
                .strip_suffix("kB")?
                .trim()
                .parse::<u64>()
                .ok()
        });
        kilobytes.unwrap_or(0).saturating_mul(1024)
    }

    fn hottest_millicelsius(&self) -> Option<i64> {
        let zones = fs::read_dir(self.path("sys/class/thermal")).ok()?;
        zones
            .flatten()
            .filter(|zone| zone.file_name().to_string_lossy().starts_with("thermal_zone"))
            .filter_map(|zone| read_number(&zone.path().join("temp")))
            .max()
    }

    fn load_average(&self) -> Option<f64> {
        self.text("proc/loadavg")?.split(' ').next()?.parse().ok()
    }
}

fn read_number(path: &Path) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Counts the CPUs of a kernel list such as `0-3,6`. Parts that are no range count nothing.
fn count_cpu_list(list: &str) -> u32 {
    list.split(',').fold(0_u32, |count, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) else {
            return count;
        };
        count.saturating_add(last.saturating_sub(first).saturating_add(1))
    })
}

#[cfg(test)]
mod tests;
