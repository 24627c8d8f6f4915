//! An upper bound on the throughput of every policy on a board model, with which policies are compared.

use crate::board_model::BoardModel;

/// Returns an upper bound on the samples per second that the board can sustain.
///
/// The bound is a linear programme. Let `x_S` be the share of time in which exactly the units of the set `S` compute.
/// Maximise the sum of `x_S * rate(S)`, where no `x_S` is negative, their sum is at most 1, and no unit computes more than
/// its copy engine copies. In `rate(S)` each unit has its best batch and is slowed by the rest of `S`. Without copies only
/// one constraint is left, the optimum is a single set, and all sets are tried. Partial batches and the first copy only
/// add time.
#[must_use]
pub fn max_throughput(board: &BoardModel) -> f64 {
    max_throughput_stretched(board, &vec![1.0; board.units.len()])
}

/// Returns [`max_throughput`] for a run in which jitter has stretched each unit's work by a factor. No run with that jitter
/// is faster.
///
/// A copy engine that is slower than its unit adds a constraint, which enters with its dual price. At price 0 it copies
/// infinitely fast; at price 1 the unit counts with everything that it copies, and slows no other unit. Every price gives
/// a bound, and the result is the lower of these two.
#[must_use]
pub fn max_throughput_stretched(board: &BoardModel, stretched: &[f64]) -> f64 {
    // Boards have a few units; 16 units have 65,535 sets.
    let units = board.units.len().min(16);
    let alone =
        |unit: usize| board.units[unit].times.up_to(board.units[unit].batch).best_rate() / stretched[unit];
    let is_limited = |unit: usize| board.units[unit].copy * alone(unit) > 1.0;
    let best = |among: u32| {
        let sets = (1_u32..1 << units).filter(|set| set & !among == 0);
        sets.map(|set| {
            let of_set = |unit: &usize| set & 1 << unit != 0;
            let rates = (0..units)
                .filter(of_set)
                .map(|unit| alone(unit) / board.slowdown(unit, (0..units).filter(of_set)));
            rates.sum()
        })
        .fold(0.0, f64::max)
    };
    let all = (1_u32 << units) - 1;
    let limited = (0..units).filter(|&unit| is_limited(unit));
    let (others, copied) = limited.fold((all, 0.0), |(others, copied), unit| {
        (others & !(1 << unit), copied + board.units[unit].copy.recip())
    });
    best(all).min(copied + best(others))
}
