//! The texts of nvpmodel, NVIDIA's program for power modes: the modes of `nvpmodel.conf`, and the status file with the current one.
//! Reads no files and sets no mode.

/// The names of the mode without limits, the faster one first. A "super" mode exists on Orin Nano and Orin NX since JetPack 6.2.
pub const FASTEST: [&str; 2] = ["MAXN_SUPER", "MAXN"];

/// A power mode that a board's `nvpmodel.conf` offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedMode {
    /// Its number, as `nvpmodel -m` takes it.
    pub id: u32,
    /// Its name, where the line has one.
    pub name: Option<String>,
}

/// Parses the power modes of `nvpmodel.conf` from lines such as `< POWER_MODEL ID=0 NAME=MAXN >`, in the file's order.
#[must_use]
pub fn offered_modes(conf: &str) -> Vec<OfferedMode> {
    conf.lines().filter_map(mode_of_line).collect()
}

fn mode_of_line(line: &str) -> Option<OfferedMode> {
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
    Some(OfferedMode {
        id: value("ID=")?.parse().ok()?,
        name: value("NAME=").map(|name| name.trim_end_matches('>').to_owned()),
    })
}

/// Finds the fastest of the named modes. Names are compared case-insensitively. A longer name is a different mode, and `nvpmodel -m` would set
/// different limits for it.
pub fn fastest_mode<M>(modes: &[M], name: impl Fn(&M) -> Option<&str>) -> Option<&M> {
    FASTEST.iter().find_map(|fastest| {
        modes
            .iter()
            .find(|mode| name(mode).is_some_and(|name| name.eq_ignore_ascii_case(fastest)))
    })
}

/// Parses the number of the current mode from a status such as `pmode:0002 fmode:quiet`.
#[must_use]
pub fn current_mode(status: &str) -> Option<u32> {
    status
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix("pmode:"))?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_and_the_fastest_has_exactly_its_name() {
        let conf = "# comment\n< POWER_MODEL ID=0 NAME=MAXN_CUSTOM >\n< POWER_MODEL ID=2 NAME=maxn >\nCPU_ONLINE CORE_0 1\n< POWER_MODEL ID=3>";
        let modes = offered_modes(conf);
        assert_eq!(modes.iter().map(|mode| mode.id).collect::<Vec<_>>(), [0, 2]);
        let fastest = fastest_mode(&modes, |mode| mode.name.as_deref());
        assert_eq!(fastest.map(|mode| mode.id), Some(2));
        assert_eq!(current_mode("pmode:0002 fmode:quiet\n"), Some(2));
        assert_eq!(current_mode("fmode:quiet"), None);
    }
}
