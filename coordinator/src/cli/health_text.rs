//! Formats a device's health for commands, and names the user who changes it.

pub(super) use regatta_lab_views::operations::{described, remedy};

/// Returns the name of this process's user, for the log.
pub(super) fn user() -> String {
    let named = ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok());
    named
        .filter(|name| !name.is_empty())
        .or_else(account)
        .unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))
}

/// Returns the name of this process's user in the list of this machine's accounts.
fn account() -> Option<String> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut fields = accounts.lines().map(|line| line.split(':'));
    fields.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}
