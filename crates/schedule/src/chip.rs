//! A modelled board as something to hand batches to: each unit computes its batches in the order in which they came,
//! the next one beginning at the very moment at which the one before ends, however late somebody looks.

use std::collections::VecDeque;

use crate::{MOST_IN_FLIGHT, board::Board, random::SplitMix, sharing::Sharing};

/// A batch that was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

/// The board's compute units with what they have to do. Times are seconds since it was made.
#[derive(Debug)]
pub struct Chip {
    board: Board,
    sharing: Sharing,
    units: Vec<Queue>,
    tickets: u64,
}

#[derive(Debug)]
struct Queue {
    random: SplitMix,
    /// Tickets and their work, the one that is computed first.
    batches: VecDeque<(Ticket, f64)>,
}

impl Chip {
    /// An idle board, with jitter from `seed`.
    #[must_use]
    pub fn new(board: Board, seed: u64) -> Self {
        let units = (0..board.units.len()).map(|unit| Queue {
            random: SplitMix::new(seed, unit as u64),
            batches: VecDeque::with_capacity(MOST_IN_FLIGHT),
        });
        Self {
            sharing: Sharing::new(board.units.len()),
            units: units.collect(),
            board,
            tickets: 0,
        }
    }

    /// The board.
    #[must_use]
    pub const fn board(&self) -> &Board {
        &self.board
    }

    /// Hands `unit` a batch of `size` samples.
    pub fn submit(&mut self, unit: usize, size: usize, now: f64) -> Ticket {
        self.advance(now);
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        let queue = &mut self.units[unit];
        let work = self.board.units[unit].times.seconds(size) * queue.random.factor(self.board.jitter);
        queue.batches.push_back((ticket, work));
        if queue.batches.len() == 1 {
            self.sharing.begin(&self.board, unit, work, now);
        }
        ticket
    }

    /// Until when to wait before asking again whether the batch is done, or `None` when it is. The unit may be done
    /// sooner when another one ends, which [`Self::submit`] and this function find out for all.
    pub fn wait_until(&mut self, unit: usize, ticket: Ticket, now: f64) -> Option<f64> {
        self.advance(now);
        let waits = self.units[unit]
            .batches
            .iter()
            .any(|&(waiting, _)| waiting == ticket);
        waits.then(|| self.sharing.ready_at(&self.board, unit)).flatten()
    }

    /// Ends what is ready by `now`, each at its own time, and begins what was waiting for it.
    fn advance(&mut self, now: f64) {
        while let Some((unit, ready)) = self
            .sharing
            .next_ready(&self.board)
            .filter(|&(_, ready)| ready <= now)
        {
            self.sharing.end(&self.board, unit, ready);
            let batches = &mut self.units[unit].batches;
            batches.pop_front();
            if let Some(&(_, work)) = batches.front() {
                self.sharing.begin(&self.board, unit, work, ready);
            }
        }
    }
}
