//! What lies between the device and the coordinator's assets: a relay on an address of its own that counts, cuts and holds back.
//! It sees TLS records, and nothing in them.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use regatta_tests::{Lab, eventually};

use crate::support::assets_port;

/// Counts what goes down, cuts connections, holds bytes back.
pub(crate) struct Between {
    down: Arc<AtomicU64>,
    hold_at: Arc<AtomicU64>,
}

impl Between {
    /// Begins to relay. Connections are cut after this number of bytes downstream in all.
    pub(crate) fn start(lab: &Lab, cut_at: &'static [u64]) -> Self {
        let port = assets_port(lab);
        let listener = TcpListener::bind(("127.0.0.2", port)).expect("an address of loopback");
        let between = Self {
            down: Arc::new(AtomicU64::new(0)),
            hold_at: Arc::new(AtomicU64::new(u64::MAX)),
        };
        let (down, hold_at) = (Arc::clone(&between.down), Arc::clone(&between.hold_at));
        thread::spawn(move || {
            let mut cuts = cut_at.iter().copied();
            let mut cut = cuts.next();
            for device in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
                    continue;
                };
                let (mut up_from, mut up_to) = (
                    device.try_clone().expect("a socket"),
                    server.try_clone().expect("a socket"),
                );
                thread::spawn(move || std::io::copy(&mut up_from, &mut up_to));
                if pass_down(server, device, &down, &hold_at, cut) {
                    cut = cuts.next();
                }
            }
        });
        between
    }

    /// Bytes that went down.
    pub(crate) fn down(&self) -> u64 {
        self.down.load(Ordering::Relaxed)
    }

    /// Limits the bytes downstream.
    pub(crate) fn hold_at(&self, bytes: u64) {
        self.hold_at.store(bytes, Ordering::Relaxed);
    }

    /// Waits until this number of bytes is held back.
    pub(crate) fn wait_until_held(&self) {
        let at = self.hold_at.load(Ordering::Relaxed);
        eventually("a part to be here", 60, || self.down() >= at);
    }
}

/// Passes bytes on, until there are no more or it is time to cut: then `true`.
fn pass_down(
    mut server: TcpStream,
    mut device: TcpStream,
    counted: &AtomicU64,
    hold_at: &AtomicU64,
    cut: Option<u64>,
) -> bool {
    let mut piece = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = server.read(&mut piece) {
        while counted.load(Ordering::Relaxed) >= hold_at.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(5));
        }
        if device.write_all(&piece[..read]).is_err() {
            break;
        }
        let down = counted.fetch_add(read as u64, Ordering::Relaxed) + read as u64;
        if cut.is_some_and(|at| down >= at) {
            let _ = device.shutdown(Shutdown::Both);
            return true;
        }
    }
    let _ = device.shutdown(Shutdown::Both);
    false
}
