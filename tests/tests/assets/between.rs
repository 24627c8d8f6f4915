//! A relay between the device and the coordinator's assets, on its own address. It counts, cuts and delays bytes, and sees only
//! TLS records.

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

/// A relay that counts bytes downstream, cuts connections and holds bytes back.
pub(crate) struct Between {
    down: Arc<AtomicU64>,
    hold_at: Arc<AtomicU64>,
}

impl Between {
    /// Starts a relay. It cuts connections after these numbers of bytes downstream.
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

    /// Returns the bytes sent downstream.
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

/// Forwards bytes until the end, or until a cut. Returns whether it is a cut.
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
