//! SNTP (RFC 4330): a query for this clock's offset, and a responder for rehearsals without a network.
//!
//! It sets no clock. The official programs refuse a session when an offset reaches 400 ms.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The UDP port of NTP. The official programs use no other.
pub const PORT: u16 = 123;
/// The offset at which the official programs refuse a session.
pub const MAX_OFFSET: Duration = Duration::from_millis(400);

/// Seconds from NTP's epoch, 1900, to 1970.
const EPOCH_1900: f64 = 2_208_988_800.0;
/// The length of a packet without extensions.
const PACKET: usize = 48;
/// Where a packet has the time at which the request left, arrived, and at which the reply left.
const ORIGINATE: usize = 24;
const RECEIVE: usize = 32;
const TRANSMIT: usize = 40;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the NTP server at `host` for its time. Returns how many seconds its clock is ahead of this machine's.
///
/// # Errors
/// When the host is unknown, does not answer within 5 s, or has no time.
pub fn offset(host: &str) -> io::Result<f64> {
    offset_from(host, PORT)
}

fn offset_from(host: &str, port: u16) -> io::Result<f64> {
    let server = (host, port).to_socket_addrs()?.next();
    let server = server.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it has no address"))?;
    let here: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(here)?;
    // From here on only this server's packets arrive.
    socket.connect(server)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut packet = [0; PACKET];
    // Version 4, mode 3: client.
    packet[0] = 0b00_100_011;
    let sent = now();
    put_stamp(&mut packet, TRANSMIT, sent);
    let request = packet;
    socket.send(&request)?;
    let length = socket.recv(&mut packet)?;
    let arrived = now();
    let mode = packet[0] & 0b111;
    // Stratum 0 is a refusal. The request's own time distinguishes the reply from older ones.
    if length < PACKET || mode != 4 || packet[1] == 0 || packet[ORIGINATE..RECEIVE] != request[TRANSMIT..] {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it does not answer with a time",
        ));
    }
    let (received, transmitted) = (stamp(&packet, RECEIVE), stamp(&packet, TRANSMIT));
    Ok(((received - sent) + (transmitted - arrived)) / 2.0)
}

/// Answers NTP requests with this machine's time until the process ends.
///
/// # Errors
/// When the address cannot be bound. Port 123 needs root, or a separate network namespace.
pub fn answer_requests(address: SocketAddr) -> io::Result<SocketAddr> {
    let socket = UdpSocket::bind(address)?;
    let bound = socket.local_addr()?;
    thread::spawn(move || {
        let mut packet = [0; PACKET];
        // Only a failed network device ends it; the sessions then say that there is no NTP.
        while let Ok((length, from)) = socket.recv_from(&mut packet) {
            if length == PACKET {
                let _ = socket.send_to(&answer(&packet, now()), from);
            }
        }
    });
    Ok(bound)
}

fn answer(request: &[u8; PACKET], time: f64) -> [u8; PACKET] {
    let mut reply = [0; PACKET];
    // Mode 4: server. Stratum 1, "LOCL": an uncalibrated local clock.
    reply[0] = 0b00_100_100;
    reply[1] = 1;
    reply[12..16].copy_from_slice(b"LOCL");
    reply[ORIGINATE..RECEIVE].copy_from_slice(&request[TRANSMIT..]);
    put_stamp(&mut reply, RECEIVE, time);
    put_stamp(&mut reply, TRANSMIT, time);
    reply
}

/// Seconds since 1900.
fn now() -> f64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since_1970.as_secs_f64() + EPOCH_1900
}

fn put_stamp(packet: &mut [u8; PACKET], at: usize, time: f64) {
    // Seconds and their 2^32nd parts. The seconds wrap in 2036, as NTP's do.
    let whole = time.floor();
    let fraction = ((time - whole) * 4_294_967_296.0) as u32;
    packet[at..at + 4].copy_from_slice(&(whole as u64 as u32).to_be_bytes());
    packet[at + 4..at + 8].copy_from_slice(&fraction.to_be_bytes());
}

/// Reads what [`put_stamp`] writes.
fn stamp(packet: &[u8; PACKET], at: usize) -> f64 {
    let number = |at: usize| {
        let bytes = [packet[at], packet[at + 1], packet[at + 2], packet[at + 3]];
        f64::from(u32::from_be_bytes(bytes))
    };
    number(at) + number(at + 4) / 4_294_967_296.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_responder_has_this_machines_time() {
        let address = answer_requests(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let offset = offset_from("127.0.0.1", address.port()).unwrap();
        assert!(offset.abs() < 0.2, "{offset}");
        let request = [0; PACKET];
        let reply = answer(&request, 2_208_988_800.5);
        assert_eq!((reply[0] & 0b111, reply[1]), (4, 1), "a synchronised server");
        assert_eq!(stamp(&reply, TRANSMIT), 2_208_988_800.5);
    }

    #[test]
    fn a_server_that_is_off_or_has_no_time_is_noticed() {
        for (ahead, stratum) in [(2.0, 1), (-3600.0, 2), (0.0, 0)] {
            let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
            let port = socket.local_addr().unwrap().port();
            let server = thread::spawn(move || {
                let mut packet = [0; PACKET];
                let (_, from) = socket.recv_from(&mut packet).unwrap();
                let mut reply = answer(&packet, now() + ahead);
                reply[1] = stratum;
                socket.send_to(&reply, from).unwrap();
            });
            let found = offset_from("127.0.0.1", port);
            server.join().unwrap();
            match stratum {
                0 => assert!(found.is_err()),
                _ => assert!((found.unwrap() - ahead).abs() < 0.2, "{ahead}"),
            }
        }
    }
}
