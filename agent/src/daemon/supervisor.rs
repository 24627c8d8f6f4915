//! Notifications to the service manager by systemd's `sd_notify` protocol: ready, alive and stopping. Without a service
//! manager, nothing is sent.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            ffi::OsStrExt as _,
            net::{SocketAddr, UnixDatagram},
        },
    },
    time::Duration,
};

/// Variables of the notification protocol. Run processes must not inherit them, or they could notify in the daemon's
/// name.
pub(crate) const VARIABLES: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];

/// The service manager, if there is one.
#[derive(Debug)]
pub(crate) struct Supervisor {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// Returns the service manager that the environment names.
    pub(crate) fn of_this_process() -> Self {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// Reads the variables as `sd_notify(3)` and `sd_watchdog_enabled(3)` do.
    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        let socket = variable("NOTIFY_SOCKET").and_then(|address| match open(&address) {
            Ok(socket) => Some(socket),
            Err(e) => {
                tracing::warn!(
                    "the service manager at {} gets no notifications: {e}",
                    address.display()
                );
                None
            }
        });
        let for_us = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|&micros| for_us && micros > 0);
        Self {
            watchdog: watchdog.filter(|_| socket.is_some()).map(Duration::from_micros),
            socket,
        }
    }

    /// Returns the interval for [`Self::alive`]: half of the service manager's watchdog timeout.
    pub(crate) fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|limit| limit / 2)
    }

    /// Notifies that the daemon has started and accepts runs. The broker may still be unreachable.
    pub(crate) fn ready(&self) {
        self.notify(b"READY=1");
    }

    /// Notifies that the event loop runs.
    pub(crate) fn alive(&self) {
        self.notify(b"WATCHDOG=1");
    }

    /// Notifies that the daemon stops. This may take as long as a run process's grace period.
    pub(crate) fn stopping(&self) {
        self.notify(b"STOPPING=1");
    }

    fn notify(&self, notification: &[u8]) {
        if let Some((socket, address)) = &self.socket {
            // A restarting service manager may lose a notification. The next watchdog notification follows soon.
            if let Err(e) = socket.send_to_addr(notification, address) {
                tracing::warn!(
                    "the service manager did not get the notification {}: {e}",
                    notification.escape_ascii()
                );
            }
        }
    }
}

/// Opens the notification socket. An abstract address starts with `@`.
fn open(address: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match address.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(address)?,
    };
    let socket = UnixDatagram::unbound()?;
    // A full socket must not block the event loop.
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supervisor(variables: &[(&str, String)]) -> Supervisor {
        Supervisor::from_variables(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn notifications_reach_a_socket_file_and_an_abstract_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let name = format!("regatta-supervisor-{}", std::process::id());
        let file = UnixDatagram::bind(&path).unwrap();
        let abstract_name = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        for (listener, address) in [
            (file, path.display().to_string()),
            (abstract_name, format!("@{name}")),
        ] {
            let supervisor = supervisor(&[("NOTIFY_SOCKET", address)]);
            supervisor.ready();
            supervisor.alive();
            supervisor.stopping();
            assert_eq!(
                [(); 3].map(|()| received(&listener)),
                ["READY=1", "WATCHDOG=1", "STOPPING=1"]
            );
        }
    }

    #[test]
    fn the_watchdog_is_for_the_process_that_it_names_and_needs_a_socket() {
        let dir = tempfile::tempdir().unwrap();
        let socket = ("NOTIFY_SOCKET", dir.path().join("s").display().to_string());
        let limit = ("WATCHDOG_USEC", "30000000".to_owned());
        let interval = |variables: &[_]| supervisor(variables).watchdog_interval();
        let half = Some(Duration::from_secs(15));
        assert_eq!(interval(&[socket.clone(), limit.clone()]), half);
        let own = ("WATCHDOG_PID", std::process::id().to_string());
        assert_eq!(interval(&[socket.clone(), limit.clone(), own]), half);
        let other = ("WATCHDOG_PID", "1".to_owned());
        assert_eq!(interval(&[socket.clone(), limit.clone(), other]), None);
        assert_eq!(interval(&[limit]), None);
        assert_eq!(interval(&[socket, ("WATCHDOG_USEC", "0".to_owned())]), None);
    }

    #[test]
    fn a_missing_service_manager_is_no_error() {
        supervisor(&[]).ready();
        supervisor(&[("NOTIFY_SOCKET", "/nonexistent/socket".to_owned())]).ready();
        supervisor(&[("NOTIFY_SOCKET", "x".repeat(500))]).ready();
    }
}
