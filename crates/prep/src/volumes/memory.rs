//! How many volumes are prepared at once: as many as fit into the memory that the machine has left.

use std::fs;

use regatta_datasets::volumes::PLANES;

/// The most volumes that are prepared at once.
const MAX_AT_ONCE: usize = 4;
/// The bytes of a voxel as it is computed, and the most of one in a file.
const VALUE: u64 = 4;
const STORED: u64 = 8;

/// Returns the bytes that a volume takes: its voxels of `from` are read, changed to `to`, and written.
pub(super) fn memory_of([rows, columns, planes]: [usize; 3], to: [usize; 3]) -> u64 {
    let product = |sides: [usize; 3]| sides.iter().map(|&side| side as u64).product::<u64>();
    let (from, to) = (product([rows, columns, planes]), product(to));
    // Values of all voxels, and a block of them as they are in the file.
    let block = product([rows, columns, planes.min(PLANES)]);
    let reading = VALUE * from + (STORED + VALUE) * block;
    // Each change makes a copy, and so does the header of the sample's file.
    let changing = VALUE * (from + to).max(2 * to);
    reading.max(changing)
}

/// Returns the number of volumes of at most `largest` bytes that are prepared at once. One is, however large it is.
pub(super) fn volumes_at_once(largest: u64, available: Option<u64>) -> usize {
    // A quarter is left to others.
    let count = available.map_or(1, |available| available / 4 * 3 / largest.max(1));
    usize::try_from(count)
        .unwrap_or(MAX_AT_ONCE)
        .clamp(1, MAX_AT_ONCE)
}

/// Returns the bytes of memory that are free. `None` where the system does not say.
pub(super) fn free_memory() -> Option<FreeMemory> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let bytes = |key: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
        let kib: u64 = rest.split_whitespace().next()?.parse().ok()?;
        kib.checked_mul(1024)
    };
    let available = bytes("MemAvailable:")?;
    Some(FreeMemory {
        available,
        with_swap: available.saturating_add(bytes("SwapFree:").unwrap_or(0)),
    })
}

/// Free memory in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct FreeMemory {
    pub(super) available: u64,
    pub(super) with_swap: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_volumes_are_prepared_as_fit_into_memory() {
        // The largest case of KiTS19, and the largest volume of all.
        let (large, largest) = (
            memory_of([512, 512, 1059], [330, 330, 700]),
            memory_of([812, 812, 812], [812, 812, 812]),
        );
        assert_eq!(large / 1_000_000, 1415);
        assert!(largest <= 4 << 30, "{largest}");
        let gib = |gib: u64| Some(gib << 30);
        assert_eq!(volumes_at_once(large, gib(16)), 4);
        assert_eq!(volumes_at_once(large, gib(4)), 2);
        assert_eq!(volumes_at_once(largest, gib(4)), 1);
        assert_eq!(volumes_at_once(1000, None), 1);
    }
}
