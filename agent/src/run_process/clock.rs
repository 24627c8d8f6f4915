//! A reading of the device's clocks for the evidence.

mod discipline;

use regatta_types::documents::Clock;
use rustix::time::{ClockId, clock_gettime};

use self::discipline::Discipline;

/// The kernel's file with the boot id.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Reads the clocks. Without `/proc`, the boot id is empty.
pub(crate) fn read() -> Clock {
    let monotonic = clock_gettime(ClockId::Monotonic);
    let utc = jiff::Timestamp::now();
    let nanoseconds = i128::from(monotonic.tv_sec) * 1_000_000_000 + i128::from(monotonic.tv_nsec);
    let discipline = Discipline::of_kernel();
    Clock {
        utc: format!("{utc:.9}"),
        monotonic_ns: u64::try_from(nanoseconds).unwrap_or(0),
        boot_id: std::fs::read_to_string(BOOT_ID)
            .unwrap_or_default()
            .trim()
            .to_owned(),
        ntp_offset_us: discipline.and_then(Discipline::offset_us),
        synchronised: discipline.map(Discipline::is_synchronised),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_in_order_and_from_one_boot() {
        let (first, second) = (read(), read());
        assert!(first.monotonic_ns > 0 && first.monotonic_ns <= second.monotonic_ns);
        assert_eq!((first.boot_id.len(), &first.boot_id), (36, &second.boot_id));
        let utc: jiff::Timestamp = first.utc.parse().unwrap();
        assert!(utc <= jiff::Timestamp::now());
        assert_eq!(first.utc.len(), "2026-11-21T09:00:00.123456789Z".len());
    }
}
