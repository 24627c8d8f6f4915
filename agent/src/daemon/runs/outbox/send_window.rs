//! The window of unacknowledged chunks of a run. It first doubles with every round trip, then grows by one with every
//! acknowledgement. It halves after a loss and shrinks to one chunk after silence. As in TCP, a slow coordinator or
//! broker receives less.

/// Initial size: 1 MiB, so that a fast connection is not limited by the first round trips.
const FIRST: u32 = 16;

/// The current size and its growth.
#[derive(Debug)]
pub(super) struct SendWindow {
    size: u32,
    /// Size from which growth is linear instead of exponential.
    threshold: u32,
    largest: u32,
}

impl SendWindow {
    /// Returns a window that never exceeds `largest` chunks.
    pub(super) fn new(largest: u32) -> Self {
        let largest = largest.max(1);
        Self {
            size: FIRST.min(largest),
            threshold: largest,
            largest,
        }
    }

    /// Returns the number of chunks that may be in flight.
    pub(super) fn size(&self) -> u64 {
        self.size.into()
    }

    /// Grows the window after an acknowledgement of `chunks` chunks.
    pub(super) fn acknowledged(&mut self, chunks: u64) {
        let doubled = u32::try_from(chunks).unwrap_or(u32::MAX);
        let more = if self.size < self.threshold { doubled } else { 1 };
        self.size = self.size.saturating_add(more).min(self.largest);
    }

    /// Halves the window after a loss.
    pub(super) fn lost(&mut self) {
        self.threshold = (self.size / 2).max(FIRST).min(self.largest);
        self.size = self.threshold;
    }

    /// Shrinks the window to one chunk, until an acknowledgement arrives.
    pub(super) fn timed_out(&mut self) {
        self.threshold = (self.size / 2).max(FIRST).min(self.largest);
        self.size = 1;
    }

    /// Resets the window for a new connection.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_doubles_until_a_loss_and_then_grows_by_one() {
        let mut window = SendWindow::new(384);
        for size in [16, 32, 64, 128, 256] {
            assert_eq!(window.size(), size);
            window.acknowledged(size);
        }
        window.lost();
        assert_eq!(window.size(), 192);
        window.acknowledged(192);
        assert_eq!(window.size(), 193);
        window.timed_out();
        assert_eq!(window.size(), 1);
        window.acknowledged(1);
        window.acknowledged(1_000);
        assert_eq!(window.size(), 384, "never more than the largest");
        window.reset();
        assert_eq!(window.size(), 16);
    }
}
