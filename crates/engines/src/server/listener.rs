//! Who listens at an address of this machine: the sockets in `/proc/net/tcp` and `/proc/net/tcp6`, and the process that holds one of them.

use std::{
    fs, io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

use super::process_facts::ProcessId;

const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// The number of the state of a socket that listens.
const LISTENS: &str = "0A";

/// A socket that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListeningSocket {
    pub(super) inode: u64,
    /// The user whose process opened it.
    pub(super) user: u32,
}

/// Returns the sockets that accept connections to an address: those that are bound to it, otherwise those that are bound to all addresses.
pub(super) fn sockets_at(address: SocketAddr) -> io::Result<Vec<ListeningSocket>> {
    let mut tables = String::new();
    for table in TABLES {
        match fs::read_to_string(table) {
            Ok(text) => tables += &text,
            // A kernel without IPv6 has one table.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sockets_in(&tables, address))
}

fn sockets_in(tables: &str, address: SocketAddr) -> Vec<ListeningSocket> {
    let listening = tables.lines().filter_map(listening);
    let (mut bound, mut to_all) = (Vec::new(), Vec::new());
    for (own, socket) in listening.filter(|(own, _)| own.port() == address.port()) {
        let ip = own.ip().to_canonical();
        if ip == address.ip() {
            bound.push(socket);
        } else if ip.is_unspecified() && (ip.is_ipv6() || address.is_ipv4()) {
            to_all.push(socket);
        }
    }
    if bound.is_empty() { to_all } else { bound }
}

/// Parses a line of a table: number, address, remote address, state, queues, timer, retransmissions, user, timeout, inode. `None` for a
/// socket that does not listen, and for the heading.
fn listening(line: &str) -> Option<(SocketAddr, ListeningSocket)> {
    let mut fields = line.split_whitespace().skip(1);
    let (ip, port) = fields.next()?.split_once(':')?;
    let address = SocketAddr::new(ip_of(ip)?, u16::from_str_radix(port, 16).ok()?);
    fields.next()?;
    if fields.next()? != LISTENS {
        return None;
    }
    let user = fields.nth(3)?.parse().ok()?;
    let inode = fields.nth(1)?.parse().ok()?;
    Some((address, ListeningSocket { inode, user }))
}

/// Parses an address of 32-bit words in hexadecimal, each in the machine's byte order.
fn ip_of(text: &str) -> Option<IpAddr> {
    let word = |place: usize| {
        let word = text.get(place * 8..place * 8 + 8)?;
        Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
    };
    match text.len() {
        8 => Some(IpAddr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for place in 0..4 {
                bytes[place * 4..place * 4 + 4].copy_from_slice(&word(place)?);
            }
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

/// Returns the process that holds one of the sockets; the one that was started first, if processes share them. `None` when all of these
/// belong to other users.
pub(super) fn holder(sockets: &[ListeningSocket]) -> Option<ProcessId> {
    let links: Vec<String> = sockets
        .iter()
        .map(|socket| format!("socket:[{}]", socket.inode))
        .collect();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holds_one = |pid: &u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten();
        files
            .filter_map(|file| fs::read_link(file.path()).ok())
            .any(|target| links.iter().any(|link| target.as_os_str() == link.as_str()))
    };
    pids.filter(holds_one)
        .filter_map(ProcessId::running)
        .min_by_key(|process| (process.start_ticks, process.pid))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    /// Lines of the kernel, which prints addresses in the byte order of the machine.
    #[cfg(target_endian = "little")]
    const TABLES: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 41 1 ffff 100 0 0 10 0
   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 42 1 ffff 100 0 0 10 0
   2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 02:000A7214 00000000  1000        0 43 2 ffff 20 4 30 10 -1
   3: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000    33        0 44 1 ffff 100 0 0 10 0
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:2328 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 45 1 ffff
   1: 00000000000000000000000001000000:2328 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     7        0 46 1 ffff
   2: 0000000000000000FFFF00000100007F:0BB8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     8        0 47 1 ffff
   3: 0000:2328 00000000:0000 0A 0:0 0:0 0 0 0 48
   4: 00000000
";

    #[cfg(target_endian = "little")]
    #[test]
    fn a_socket_of_the_address_is_taken_before_one_of_all_addresses() {
        let found = |address: &str| {
            let sockets = sockets_in(TABLES, address.parse().unwrap());
            sockets
                .iter()
                .map(|socket| (socket.inode, socket.user))
                .collect::<Vec<_>>()
        };
        assert_eq!(found("127.0.0.1:8080"), [(41, 1000)]);
        assert_eq!(found("127.0.0.2:8080"), [(42, 0)]);
        assert_eq!(found("127.0.0.1:80"), [(44, 33)]);
        assert_eq!(found("127.0.0.1:9000"), [(45, 0)], "IPv6 accepts IPv4");
        assert_eq!(found("[::1]:9000"), [(46, 7)]);
        assert_eq!(found("127.0.0.1:3000"), [(47, 8)], "IPv4 in IPv6");
        assert_eq!(found("[::1]:8080"), []);
        assert_eq!(found("127.0.0.1:50000"), []);
    }

    #[test]
    fn this_process_holds_its_own_socket() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let sockets = sockets_at(listener.local_addr().unwrap()).unwrap();
        assert_eq!(sockets.len(), 1);
        assert_eq!(
            holder(&sockets).map(|process| process.pid),
            Some(std::process::id())
        );
        drop(listener);
        assert_eq!(holder(&sockets), None);
    }
}
