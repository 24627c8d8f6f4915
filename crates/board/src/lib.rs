//! Facts about the board and its state, from the kernel's files, and the judgement whether it is fit to measure. Reading needs no
//! rights and no library; facts that a machine does not provide are empty. [`FactsReader`] reads the few facts of every hello and
//! every run's evidence; [`examination`] reads the rest, for `doctor`. The crate starts no process and does not query CUDA: the
//! caller provides the GPUs.

mod board;
pub mod examination;
mod host;
mod kernel_text;
mod power;
mod readiness;
mod root;
mod sensors;
mod software;
mod system;

use std::{fs, path::Path};

use regatta_types::documents::{DeviceFacts, GpuFacts, SoftwareFacts};

use self::kernel_text::{count_cpu_list, kilobytes};
pub use self::{power::gpu_device, readiness::Readiness, root::Root};

/// A reader of facts below a root directory: `/` on a device, a synthetic tree in tests.
#[derive(Debug, Clone)]
pub struct FactsReader {
    root: Root,
    gpus: Vec<GpuFacts>,
    tensorrt_obstacle: Option<String>,
}

impl FactsReader {
    /// Returns a reader for this machine.
    pub fn of_this_machine() -> Self {
        Self::below(Path::new("/"))
    }

    fn below(root: &Path) -> Self {
        Self {
            root: Root::new(root),
            gpus: Vec::new(),
            tensorrt_obstacle: None,
        }
    }

    /// Returns the reader with the queried GPUs, and the reason why TensorRT cannot use them, if there is one.
    pub fn with_gpus(self, gpus: Vec<GpuFacts>, tensorrt_obstacle: Option<String>) -> Self {
        Self {
            gpus,
            tensorrt_obstacle,
            ..self
        }
    }

    /// Returns the GPUs, if they were queried.
    pub fn gpus(&self) -> &[GpuFacts] {
        &self.gpus
    }

    /// Reads the current facts.
    pub fn read(&self) -> DeviceFacts {
        let board = board::Board::read(&self.root);
        DeviceFacts {
            hostname: self.root.text("proc/sys/kernel/hostname").unwrap_or_default(),
            model: self.model(),
            arch: std::env::consts::ARCH.to_owned(),
            kernel: self.root.text("proc/sys/kernel/osrelease").unwrap_or_default(),
            boot_id: self.boot_id(),
            os: self.operating_system(),
            module: board.module.map(|module| module.part),
            dla_cores: u32::try_from(board.dla_cores).unwrap_or(u32::MAX),
            cpus: self.cpus(),
            memory_bytes: self.memory_bytes(),
            cpu_governor: self
                .root
                .text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            cpu_khz: self
                .root
                .number("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"),
            hottest_millicelsius: self.hottest_millicelsius(),
            load_average: self.load_average(),
            gpus: self.gpus.clone(),
            tensorrt_obstacle: self.tensorrt_obstacle.clone(),
            onnxruntime: None,
            heartbeat_ms: None,
            assets_max_bytes: None,
            state_helper: None,
            loadgens: Vec::new(),
            software: None,
        }
    }

    /// Reads the versions of the system software. This reads dpkg's database, which takes milliseconds.
    pub fn software(&self) -> SoftwareFacts {
        let software = software::Software::read(&self.root);
        SoftwareFacts {
            agent_sha256: None,
            jetpack: software.jetpack,
            tensorrt: software.tensorrt,
            onnxruntime: None,
        }
    }

    /// Returns the kernel's boot id, which changes with every boot.
    pub fn boot_id(&self) -> Option<String> {
        self.root.text("proc/sys/kernel/random/boot_id")
    }

    /// Returns the device tree's model on boards, or the DMI product on PCs.
    fn model(&self) -> String {
        [
            "proc/device-tree/model",
            "sys/firmware/devicetree/base/model",
            "sys/class/dmi/id/product_name",
        ]
        .into_iter()
        .find_map(|file| self.root.text(file))
        .unwrap_or_default()
    }

    fn operating_system(&self) -> String {
        software::os_release(&self.root, "PRETTY_NAME").unwrap_or_default()
    }

    /// Returns the number of online CPUs. A power mode may disable some.
    fn cpus(&self) -> u32 {
        self.root
            .text("sys/devices/system/cpu/online")
            .map_or(0, |list| count_cpu_list(&list))
    }

    /// Returns the physical memory in bytes, or 0 if the kernel does not report it.
    pub fn memory_bytes(&self) -> u64 {
        let text = self.root.text("proc/meminfo").unwrap_or_default();
        kilobytes(&text, "MemTotal:").unwrap_or(0)
    }

    fn hottest_millicelsius(&self) -> Option<i64> {
        let zones = fs::read_dir(self.root.path("sys/class/thermal")).ok()?;
        zones
            .flatten()
            .filter(|zone| zone.file_name().to_string_lossy().starts_with("thermal_zone"))
            .filter_map(|zone| read_number(&zone.path().join("temp")))
            .max()
    }

    fn load_average(&self) -> Option<f64> {
        self.root.text("proc/loadavg")?.split(' ').next()?.parse().ok()
    }
}

fn read_number(path: &Path) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests;
