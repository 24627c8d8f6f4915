//! What no policy can beat on a modelled board, by which policies are judged.

use crate::board::Board;

/// Most samples per second that the board can do for long.
///
/// The linear programme: let `x_S` be the share of time in which exactly the units of the set `S` compute; maximise the
/// sum of `x_S * rate(S)` with the sum of all `x_S` at most 1 and none negative. Its one constraint makes the optimum
/// the best single set, so the sets are simply tried. `rate(S)` gives each unit of `S` its best batch, slowed by the rest
/// of `S`, and no more than its copy engine brings. Remainders, jitter above its mean and the first copy only cost time,
/// so no policy is quicker in the mean.
#[must_use]
pub fn best_rate(board: &Board) -> f64 {
    // Boards have a handful of units; 16 would be 65,535 sets.
    let units = board.units.len().min(16);
    (1_u32..1 << units)
        .map(|set| rate(board, set))
        .fold(0.0, f64::max)
}

fn rate(board: &Board, set: u32) -> f64 {
    let of_set = |unit: &usize| set & 1 << unit != 0;
    let units = (0..board.units.len().min(16)).filter(of_set);
    let rates = units.map(|number| {
        let unit = &board.units[number];
        let slowdown = board.slowdown(number, (0..board.units.len().min(16)).filter(of_set));
        let copied = if unit.copy > 0.0 {
            unit.copy.recip()
        } else {
            f64::INFINITY
        };
        (unit.times.up_to(unit.batch).best_rate() / slowdown).min(copied)
    });
    rates.sum()
}
