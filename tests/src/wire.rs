//! A TCP connection that a test can reset or silence.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    thread,
    time::Duration,
};

/// A connection that forwards.
pub const OPEN: u8 = 0;
/// A connection that is reset.
pub const CUT: u8 = 1;
/// A connection that carries nothing more, as with a cable pulled out.
pub const SILENT: u8 = 2;

/// A TCP port that forwards to another one of this machine.
pub struct Wire {
    pub port: u16,
    /// Its behaviour: [`OPEN`], [`CUT`] or [`SILENT`].
    pub state: Arc<AtomicU8>,
}

impl Wire {
    /// Opens a port that forwards to another one.
    ///
    /// # Panics
    /// Panics when no port can be had.
    #[must_use]
    pub fn to(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let state = Arc::new(AtomicU8::new(OPEN));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(("127.0.0.1", target)) else {
                    return;
                };
                let clone = |stream: &TcpStream| stream.try_clone().expect("a stream");
                let (one, other) = ((clone(&near), clone(&far)), (far, near));
                for (from, to) in [one, other] {
                    let state = Arc::clone(&shared);
                    thread::spawn(move || forward(from, to, &state));
                }
            }
        });
        Self { port, state }
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, state: &AtomicU8) {
    let wait = Duration::from_millis(100);
    from.set_read_timeout(Some(wait)).expect("a time limit");
    let mut piece = vec![0; 64 * 1024];
    loop {
        match state.load(Ordering::Relaxed) {
            OPEN => {}
            SILENT => {
                thread::sleep(wait);
                continue;
            }
            _ => break,
        }
        match from.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => {
                if to.write_all(&piece[..length]).is_err() {
                    break;
                }
            }
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) => {}
            Err(_) => break,
        }
    }
    // Either end may be closed already.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
