//! What no policy can beat on a modelled board, by which policies are judged.

use crate::board::Board;

/// Most samples per second that the board can do for long.
///
/// The linear programme: let `x_S` be the share of time in which exactly the units of the set `S` compute; maximise the
/// sum of `x_S * rate(S)` with the sum of all `x_S` at most 1 and none negative, and no unit doing more than its copy
/// engine brings. `rate(S)` gives each unit of `S` its best batch, slowed by the rest of `S`. Without the copies its one
/// constraint makes the optimum the best single set, so the sets are simply tried. Remainders and the first copy only cost
/// time.
#[must_use]
pub fn best_rate(board: &Board) -> f64 {
    best_rate_stretched(board, &vec![1.0; board.units.len()])
}

/// As [`best_rate`], for a run in which each unit's work took so many times longer than its table says: no run with that
/// jitter can be quicker.
///
/// Where a copy engine is slower than its unit, the constraint on it is taken in by its dual price, once at 0 (as if it
/// copied at any speed) and once at 1 (it counts with all that it copies, and slows nobody). Any price gives a bound, and
/// the lower of the two is taken.
#[must_use]
pub fn best_rate_stretched(board: &Board, stretched: &[f64]) -> f64 {
    // Boards have a handful of units; 16 would be 65,535 sets.
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
