//! Other facts about the machine: processor, memory, swap, page size, storage, desktop, virtualisation, and clock
//! synchronisation.

use std::{fs, io::Read as _};

use serde::Serialize;

use super::{
    host,
    kernel_text::{count_cpu_list, kilobytes},
    root::Root,
};

/// Kernel names of processes that indicate a running desktop.
const DESKTOPS: [&str; 10] = [
    "Xorg",
    "Xwayland",
    "gdm3",
    "gnome-shell",
    "lightdm",
    "sddm",
    "kwin_wayland",
    "weston",
    "labwc",
    "wayfire",
];

/// Processor, memory and storage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct System {
    /// Host name.
    pub(crate) hostname: Option<String>,
    /// The processor's name, if the kernel knows it.
    pub(crate) processor: Option<String>,
    /// Online logical CPUs.
    pub(crate) cpus_online: u32,
    /// Present logical CPUs.
    pub(crate) cpus_present: u32,
    /// One-minute load average.
    pub(crate) load_average: Option<f64>,
    /// Whether the system runs under a hypervisor.
    pub(crate) is_virtual: bool,
    /// The hypervisor. `unknown` if it cannot be identified.
    pub(crate) hypervisor: Option<&'static str>,
    /// The manager of the container that this program runs in.
    pub(crate) container: Option<String>,
    /// Physical memory available to the kernel, in bytes.
    pub(crate) memory_bytes: u64,
    /// Currently available memory in bytes.
    pub(crate) memory_available_bytes: u64,
    /// Size of a memory page in bytes.
    pub(crate) page_bytes: Option<u64>,
    /// Swap areas.
    pub(crate) swap: Vec<Swap>,
    /// Disks and flash.
    pub(crate) storage: Vec<Disk>,
    /// A process of a desktop, if one runs.
    pub(crate) desktop: Option<String>,
    /// The synchronisation of the clock.
    pub(crate) clock: ClockSync,
}

/// A swap area.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Swap {
    /// Its device or file. Compressed memory is named `zram`.
    pub(crate) device: String,
    /// Size in bytes.
    pub(crate) bytes: u64,
    /// Used bytes.
    pub(crate) used_bytes: u64,
}

/// A disk, card or flash chip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Disk {
    /// Its device, for example `nvme0n1`.
    pub(crate) device: String,
    /// Its kind: NVMe, eMMC, SD card, SSD, disk or virtual disk.
    pub(crate) kind: &'static str,
    /// The manufacturer's name.
    pub(crate) model: Option<String>,
    /// Size in bytes.
    pub(crate) bytes: u64,
    /// Whether it contains the root file system.
    pub(crate) holds_root: bool,
}

/// The synchronisation of the clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ClockSync {
    /// Whether the clock is synchronised. `None` if unknown.
    pub(crate) synchronised: Option<bool>,
    /// The time service.
    pub(crate) by: Option<&'static str>,
}

impl System {
    /// Reads the machine.
    pub(crate) fn read(root: &Root) -> Self {
        let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
        let meminfo = root.text("proc/meminfo").unwrap_or_default();
        let hypervisor = host::hypervisor(root, &cpuinfo);
        let cpus = |list: &str| root.text(&format!("sys/devices/system/cpu/{list}"));
        Self {
            hostname: root.text("proc/sys/kernel/hostname"),
            processor: processor(&cpuinfo),
            cpus_online: cpus("online").map_or(0, |list| count_cpu_list(&list)),
            cpus_present: cpus("present").map_or(0, |list| count_cpu_list(&list)),
            load_average: root
                .text("proc/loadavg")
                .and_then(|text| text.split(' ').next()?.parse().ok()),
            is_virtual: hypervisor.is_some(),
            hypervisor,
            container: host::container(root),
            memory_bytes: kilobytes(&meminfo, "MemTotal:").unwrap_or(0),
            memory_available_bytes: kilobytes(&meminfo, "MemAvailable:").unwrap_or(0),
            page_bytes: page_bytes(root),
            swap: swap(root),
            storage: storage(root),
            desktop: desktop(root),
            clock: clock(root),
        }
    }
}

/// Returns the processor's name. x86 kernels report it. Arm kernels report numbers, and common cores are mapped to
/// names.
fn processor(cpuinfo: &str) -> Option<String> {
    let value = |key: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let part = || {
        Some(
            match (value("CPU implementer")?.as_str(), value("CPU part")?.as_str()) {
                ("0x41", "0xd03") => "Arm Cortex-A53".to_owned(),
                ("0x41", "0xd07") => "Arm Cortex-A57".to_owned(),
                ("0x41", "0xd08") => "Arm Cortex-A72".to_owned(),
                ("0x41", "0xd0b") => "Arm Cortex-A76".to_owned(),
                ("0x41", "0xd42") => "Arm Cortex-A78AE".to_owned(),
                ("0x41", "0xd83") => "Arm Neoverse-V3AE".to_owned(),
                ("0x4e", "0x003") => "NVIDIA Denver 2".to_owned(),
                ("0x4e", "0x004") => "NVIDIA Carmel".to_owned(),
                (implementer, part) => format!("implementer {implementer}, part {part}"),
            },
        )
    };
    // Old Arm kernels name every core `ARMv8 Processor rev 0 (v8l)`.
    let name = value("model name").filter(|name| !name.starts_with("ARMv8 Processor"));
    name.or_else(part)
}

/// Returns the page size. The kernel reports it for every mapping; the first one is used.
fn page_bytes(root: &Root) -> Option<u64> {
    let mut begin = Vec::with_capacity(4096);
    let file = fs::File::open(root.path("proc/self/smaps")).ok()?;
    file.take(4096).read_to_end(&mut begin).ok()?;
    kilobytes(&String::from_utf8_lossy(&begin), "KernelPageSize:")
}

fn swap(root: &Root) -> Vec<Swap> {
    let text = root.text("proc/swaps").unwrap_or_default();
    let area = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (device, _kind) = (words.next()?, words.next()?);
        let mut bytes = || words.next()?.parse::<u64>().ok()?.checked_mul(1024);
        Some(Swap {
            device: device.strip_prefix("/dev/").unwrap_or(device).to_owned(),
            bytes: bytes()?,
            used_bytes: bytes()?,
        })
    };
    text.lines().skip(1).filter_map(area).collect()
}

fn storage(root: &Root) -> Vec<Disk> {
    let mounts = root.text("proc/mounts").unwrap_or_default();
    let root_device = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (device, place) = (words.next()?, words.next()?);
        (place == "/").then(|| device.trim_start_matches("/dev/").to_owned())
    });
    let disk = |device: String| {
        let text = |file: &str| root.text(&format!("sys/block/{device}/{file}"));
        // The kernel always counts in sectors of 512 bytes.
        let bytes = text("size")?.parse::<u64>().ok()?.checked_mul(512)?;
        let kind = disk_kind(
            &device,
            text("device/type").as_deref(),
            text("queue/rotational").as_deref(),
        )?;
        let is_partition = |name: &str| {
            let rest = name.strip_prefix(&device);
            rest.is_some_and(|rest| {
                rest.is_empty() || rest.trim_start_matches('p').bytes().all(|b| b.is_ascii_digit())
            })
        };
        (bytes > 0).then(|| Disk {
            kind,
            model: text("device/model").or_else(|| text("device/name")),
            bytes,
            holds_root: root_device.as_deref().is_some_and(is_partition),
            device: device.clone(),
        })
    };
    root.names("sys/block").into_iter().filter_map(disk).collect()
}

/// Returns the kind of a disk. Returns `None` for loop devices, RAM disks and boot areas.
fn disk_kind(device: &str, mmc_type: Option<&str>, rotational: Option<&str>) -> Option<&'static str> {
    Some(match device {
        _ if device.starts_with("nvme") => "NVMe",
        _ if device.starts_with("mmcblk") && device.contains("boot") => return None,
        _ if device.starts_with("mmcblk") && mmc_type == Some("SD") => "SD card",
        _ if device.starts_with("mmcblk") => "eMMC",
        _ if device.starts_with("sd") && rotational == Some("0") => "SSD",
        _ if device.starts_with("sd") => "disk",
        _ if device.starts_with("vd") => "virtual disk",
        _ => return None,
    })
}

fn desktop(root: &Root) -> Option<String> {
    let processes = root
        .names("proc")
        .into_iter()
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()));
    let mut commands = processes.filter_map(|process| root.text(&format!("proc/{process}/comm")));
    commands.find(|command| DESKTOPS.contains(&command.as_str()))
}

/// Returns the synchronisation of the clock. timesyncd creates a file when it has set the clock. Other services are
/// only detected as running; `timedatectl` shows their state.
fn clock(root: &Root) -> ClockSync {
    if root.exists("run/systemd/timesync") {
        let synchronised = root.exists("run/systemd/timesync/synchronized");
        return ClockSync {
            synchronised: Some(synchronised),
            by: Some("systemd-timesyncd"),
        };
    }
    let others = [
        ("run/chrony/chronyd.pid", "chrony"),
        ("run/chronyd.pid", "chrony"),
        ("run/ntpd.pid", "ntpd"),
    ];
    let other = others.into_iter().find(|(file, _)| root.exists(file));
    ClockSync {
        // Without a service, the clock is not synchronised.
        synchronised: other.is_none().then_some(false),
        by: other.map(|(_, name)| name),
    }
}
