//! SNTP (RFC 4330): a responder for rehearsals without a network.
//!
//! It sets no clock. The official programs refuse a session when an offset reaches 400 ms.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The UDP port of NTP. The official programs use no other.
pub const PORT: u16 = 123;
/// The offset at which the official programs refuse a session.
pub const LARGEST_OFFSET: Duration = Duration::from_millis(400);

/// Seconds from NTP's epoch, 1900, to 1970.
const EPOCH_1900: f64 = 2_208_988_800.0;
/// The length of a packet without extensions.
const PACKET: usize = 48;
/// Where a packet has the time at which the request left, arrived, and at which the reply left.
const ORIGINATE: usize = 24;
const RECEIVE: usize = 32;
const TRANSMIT: usize = 40;

/// Answers NTP requests with this machine's time until the process ends.
///
/// # Errors
/// When the address cannot be bound. Port 123 needs root, or a network namespace of one's own.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_responder_has_this_machines_time() {
        let address = answer_requests(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        socket.connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut request = [0; PACKET];
        // Version 4, mode 3: client.
        request[0] = 0b00_100_011;
        let sent = now();
        put_stamp(&mut request, TRANSMIT, sent);
        socket.send(&request).unwrap();
        let mut reply = [0; PACKET];
        assert_eq!(socket.recv(&mut reply).unwrap(), PACKET);
        let arrived = now();
        assert_eq!((reply[0] & 0b111, reply[1]), (4, 1), "a synchronised server");
        assert_eq!(reply[ORIGINATE..RECEIVE], request[TRANSMIT..]);
        for at in [RECEIVE, TRANSMIT] {
            let time = stamp(&reply, at);
            assert!(
                (sent - 0.001..=arrived + 0.001).contains(&time),
                "{sent} {time} {arrived}"
            );
        }
    }

    fn stamp(packet: &[u8; PACKET], at: usize) -> f64 {
        let number = |at: usize| {
            let bytes = [packet[at], packet[at + 1], packet[at + 2], packet[at + 3]];
            f64::from(u32::from_be_bytes(bytes))
        };
        number(at) + number(at + 4) / 4_294_967_296.0
    }
}
