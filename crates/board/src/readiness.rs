//! What a run's gate reads from the kernel: the hottest thermal zone and the available memory. It judges nothing.

use crate::{kernel_text::kilobytes, root::Root, sensors::zones};

/// A zone whose driver reports a constant 100 C on Jetson boards: its trip point, not a measurement.
const WITHOUT_SENSOR: &str = "PMIC-Die";

/// The readings of one moment. A value that the machine does not have is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// The hottest thermal zone's name, and its temperature in thousandths of a degree Celsius.
    pub hottest: Option<(String, i64)>,
    /// The available memory in bytes, by the kernel's estimate.
    pub memory_bytes: Option<u64>,
}

impl Readiness {
    /// Reads the current values.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        let meminfo = root.text("proc/meminfo").unwrap_or_default();
        Self {
            hottest: zones(root)
                .filter(|(zone, _)| zone != WITHOUT_SENSOR)
                .max_by_key(|(_, millicelsius)| *millicelsius),
            memory_bytes: kilobytes(&meminfo, "MemAvailable:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_hottest_zone_with_a_sensor_counts() {
        let directory = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let root = Root::new(directory.path());
        let nothing = Readiness {
            hottest: None,
            memory_bytes: None,
        };
        assert_eq!(Readiness::read(&root), nothing);
        for (zone, name, value) in [
            (0, "cpu-thermal", "61500"),
            (1, "PMIC-Die", "100000"),
            (2, "gpu-thermal", "off"),
        ] {
            put(&format!("sys/class/thermal/thermal_zone{zone}/type"), name);
            put(&format!("sys/class/thermal/thermal_zone{zone}/temp"), value);
        }
        put("proc/meminfo", "MemTotal: 8 kB\nMemAvailable: 4 kB\n");
        let read = Readiness::read(&root);
        assert_eq!(read.hottest, Some(("cpu-thermal".to_owned(), 61_500)));
        assert_eq!(read.memory_bytes, Some(4_096));
    }
}
