//! Formats a device's health for commands, and names the user who changes it.

pub(super) use regatta_lab_views::operations::{described, remedy};

/// Returns the name of this process's user, for the log.
pub(super) fn user() -> String {
    let named = ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok());
    named
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))
}
