//! How many chunks of a run may be on their way without acknowledgement: doubled with every round trip at first, then one
//! more with every acknowledgement, halved when chunks got lost, one after silence. As TCP does it, and for its reason: a
//! coordinator or broker that is behind gets less.

/// Where a window begins: 1 MiB, so that a quick line is not kept waiting for the first round trips.
const FIRST: u32 = 16;

/// The present size and how it grows.
#[derive(Debug)]
pub(super) struct SendWindow {
    size: u32,
    /// Below this the size doubles, above it grows slowly.
    threshold: u32,
    largest: u32,
}

impl SendWindow {
    /// A window that never grows beyond `largest` chunks.
    pub(super) fn new(largest: u32) -> Self {
        let largest = largest.max(1);
        Self {
            size: FIRST.min(largest),
            threshold: largest,
            largest,
        }
    }

    /// Chunks that may be on their way.
    pub(super) fn size(&self) -> u64 {
        self.size.into()
    }

    /// So many chunks were acknowledged at once.
    pub(super) fn acknowledged(&mut self, chunks: u64) {
        let doubled = u32::try_from(chunks).unwrap_or(u32::MAX);
        let more = if self.size < self.threshold { doubled } else { 1 };
        self.size = self.size.saturating_add(more).min(self.largest);
    }

    /// Chunks got lost.
    pub(super) fn lost(&mut self) {
        self.threshold = (self.size / 2).max(FIRST).min(self.largest);
        self.size = self.threshold;
    }

    /// Nobody answers: one chunk at a time until somebody does.
    pub(super) fn silent(&mut self) {
        self.threshold = (self.size / 2).max(FIRST).min(self.largest);
        self.size = 1;
    }

    /// The connection is new.
    pub(super) fn begin_again(&mut self) {
        *self = Self::new(self.largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_until_something_is_lost_and_creeps_from_there() {
        let mut window = SendWindow::new(384);
        for size in [16, 32, 64, 128, 256] {
            assert_eq!(window.size(), size);
            window.acknowledged(size);
        }
        window.lost();
        assert_eq!(window.size(), 192);
        window.acknowledged(192);
        assert_eq!(window.size(), 193);
        window.silent();
        assert_eq!(window.size(), 1);
        window.acknowledged(1);
        window.acknowledged(1_000);
        assert_eq!(window.size(), 384, "never more than the largest");
        window.begin_again();
        assert_eq!(window.size(), 16);
    }
}
