//! The program that listens on a TCP port of this machine, from the kernel's tables. Other users' programs are visible only to root.

use std::{fmt, fs, net::SocketAddr, path::Path};

/// The state `LISTEN` in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// The program that listens on a port. `Display` is its name, or `another program`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortHolder(Option<(String, u32)>);

impl PortHolder {
    /// Finds the program that listens on the port of `address`.
    pub fn of(address: SocketAddr) -> Self {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
        let sockets: Vec<String> = tables
            .iter()
            .filter_map(|table| fs::read_to_string(table).ok())
            .flat_map(|table| listening(&table, address.port()))
            .map(|inode| format!("socket:[{inode}]"))
            .collect();
        Self(process_with(&sockets))
    }
}

impl fmt::Display for PortHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some((name, id)) => write!(f, "`{name}` (process {id})"),
            None => f.write_str("another program"),
        }
    }
}

/// Returns the inodes of the sockets that listen on a port.
fn listening(table: &str, port: u16) -> Vec<String> {
    let port = format!(":{port:04X}");
    let lines = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_listening = fields.get(3) == Some(&LISTEN) && fields.get(1)?.ends_with(&port);
        is_listening
            .then(|| fields.get(9).map(|inode| (*inode).to_owned()))
            .flatten()
    });
    lines.collect()
}

/// Returns the name and id of a process with one of these sockets.
fn process_with(sockets: &[String]) -> Option<(String, u32)> {
    let entries = fs::read_dir("/proc").ok()?.flatten();
    // Not `self`, which is a process too.
    let mut ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let directory = |id: u32| Path::new("/proc").join(id.to_string());
    let id = ids.find(|&id| has_socket(&directory(id), sockets))?;
    let name = fs::read_to_string(directory(id).join("comm")).ok()?;
    Some((name.trim_end().to_owned(), id))
}

fn has_socket(process: &Path, sockets: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else {
        return false;
    };
    let mut targets = descriptors
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.any(|target| sockets.iter().any(|socket| target.as_os_str() == socket.as_str()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn process_that_uses_a_port_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let holder = PortHolder::of(listener.local_addr().unwrap()).0;
        assert_eq!(holder.map(|(_, id)| id), Some(std::process::id()));
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let free = other.local_addr().unwrap();
        drop(other);
        assert_eq!(PortHolder::of(free).to_string(), "another program");
    }
}
