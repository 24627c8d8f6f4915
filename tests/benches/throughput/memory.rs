//! Reserves memory for a candidate's copy. A virtual machine may return freed pages to its host within seconds. The next program
//! that writes into them then takes up to ten times the kernel time. So files of the copy's size are written before, and removed
//! a little ahead of the growing copy, which gets their pages. This module measures nothing.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

const PIECE: u64 = 64 << 20;
/// How far the removed files are ahead of the copy: the pages wait for well under a second.
const AHEAD: u64 = 4 * PIECE;

/// Files whose pages go to a copy. Dropping it removes the rest of them.
pub(crate) struct Reserve {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reserve {
    /// Writes as many bytes as `copy` will have, on the same file system, and frees them as the copy grows.
    pub(crate) fn for_copy(copy: PathBuf, bytes: u64, directory: &Path) -> io::Result<Self> {
        let content = vec![1; usize::try_from(PIECE).map_err(io::Error::other)?];
        let pieces = (0..bytes.div_ceil(PIECE) + AHEAD / PIECE)
            .map(|number| directory.join(format!("reserve-{number}")))
            .collect::<Vec<_>>();
        for piece in &pieces {
            fs::write(piece, &content)?;
        }
        let done = Arc::new(AtomicBool::new(false));
        let sent = Arc::clone(&done);
        let thread = thread::spawn(move || give_up(&pieces, &copy, &sent));
        Ok(Self {
            done,
            thread: Some(thread),
        })
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn give_up(pieces: &[PathBuf], copy: &Path, done: &AtomicBool) {
    let mut released = 0;
    for piece in pieces {
        while !done.load(Ordering::Relaxed)
            && released >= AHEAD + fs::metadata(copy).map_or(0, |copy| copy.len())
        {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = fs::remove_file(piece);
        released += PIECE;
    }
}
