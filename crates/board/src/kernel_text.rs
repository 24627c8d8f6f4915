//! Parsers of numbers in the kernel's text files. They do not read files.

/// Returns the value in bytes of a line such as `MemTotal:  65794592 kB`.
pub(super) fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kilobytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Counts the CPUs of a kernel list such as `0-3,6`. Ignores parts that do not parse.
pub(super) fn count_cpu_list(list: &str) -> u32 {
    list.split(',').fold(0_u32, |count, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) else {
            return count;
        };
        count.saturating_add(last.saturating_sub(first).saturating_add(1))
    })
}
