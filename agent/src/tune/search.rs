//! The search for the best choice within a time: a coarse round over few choices, halved while the time per trial doubles; then
//! steps to better neighbours; at the end the last two in turns. Drives a [`Stand`]; knows no process and no clock of its own.

use std::{collections::BTreeMap, time::Duration};

use super::{
    compare::{Goal, Ratio, median},
    space::{Candidate, Space},
};

/// Something that measures choices.
pub(super) trait Stand {
    /// Measures a choice for about `length`: the scenario's figure. `best` is the best figure so far.
    ///
    /// # Errors
    /// In words, when the choice does not run.
    fn measure(
        &mut self,
        settings: &BTreeMap<String, String>,
        length: Duration,
        best: Option<f64>,
    ) -> Result<f64, String>;

    /// Time since the search began.
    fn spent(&self) -> Duration;
}

/// What part of the search a trial belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The first rounds, over few choices from everywhere.
    Coarse,
    /// Steps from the best choice to its neighbours.
    Near,
    /// The last two, in turns.
    Final,
}

/// One measurement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trial {
    /// The choice.
    pub(super) candidate: Candidate,
    /// In what part.
    pub(super) part: Part,
    /// How long it was to take.
    pub(super) length: Duration,
    /// The figure, or why there is none.
    pub(super) outcome: Result<f64, String>,
}

/// What a search has come to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// The choice.
    pub(super) candidate: Candidate,
    /// Its median figure over the longest trials.
    pub(super) figure: f64,
    /// Why this one.
    pub(super) reason: String,
    /// What the time did not suffice for, if anything.
    pub(super) partial: Option<String>,
}

/// A search under way.
pub(super) struct Search<'a, S> {
    pub(super) space: &'a Space,
    pub(super) goal: Goal,
    pub(super) stand: S,
    /// The whole time.
    pub(super) limit: Duration,
    /// Configurations that are tried as they are.
    pub(super) seeds: Vec<Candidate>,
    /// Every measurement so far.
    pub(super) trials: Vec<Trial>,
    /// Told of every trial.
    pub(super) observe: &'a mut dyn FnMut(&[Trial], Option<&Found>),
}

/// The shares of the time at which the coarse rounds and the steps must end.
const COARSE_UNTIL: f64 = 0.45;
const NEAR_UNTIL: f64 = 0.75;
/// So many first trials fit into the time.
const TRIALS: u32 = 300;
/// The shortest and longest first trial.
const FIRST: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// How many times longer later trials are.
const LONGER: u32 = 4;
/// Turns of the last two.
const TURNS: usize = 5;
/// Of fewer the bootstrap knows nothing: one figure of each would always seem certain.
const LEAST_TURNS: usize = 3;
/// A step must promise at least this much before it is measured again.
const PROMISE: f64 = 1.003;

impl<S: Stand> Search<'_, S> {
    /// Searches until all is done or the time is over; `None` when no choice runs.
    pub(super) fn run(&mut self) -> Option<Found> {
        let first = (self.limit / TRIALS).clamp(FIRST.0, FIRST.1);
        let mut done = self.coarse(first);
        done &= self.near(first * LONGER);
        done &= self.in_turns(first * LONGER);
        let partial = format!("the limit of {:.0?} ended the search early", self.limit);
        self.found((!done).then_some(partial))
    }

    /// Coarse rounds. False when the time did not suffice for the first of them.
    fn coarse(&mut self, first: Duration) -> bool {
        let mut round = self.seeds.clone();
        for candidate in self.space.coarse() {
            if !round.contains(&candidate) {
                round.push(candidate);
            }
        }
        let mut length = first;
        let whole = round.len();
        loop {
            let mut measured: Vec<(Candidate, f64)> = Vec::new();
            let asked = round.len();
            for candidate in round {
                // Something must be known, however short the time.
                if self.is_over(COARSE_UNTIL) && self.best().is_some() {
                    return asked < whole;
                }
                if let Ok(figure) = self.measure(&candidate, Part::Coarse, length) {
                    measured.push((candidate, figure));
                }
            }
            measured.sort_by(|one, other| self.goal.ratio(other.1, one.1).total_cmp(&1.0));
            measured.truncate(measured.len().div_ceil(2));
            round = measured.into_iter().map(|(candidate, _)| candidate).collect();
            if round.len() < 2 || asked <= 2 {
                return true;
            }
            length = (length * 2).min(first * LONGER);
        }
    }

    /// Steps to neighbours while they are better. False when the time ended it.
    fn near(&mut self, length: Duration) -> bool {
        let Some((mut best, _)) = self.best() else {
            return true;
        };
        // Figures of shorter trials are not comparable: the best is measured once more.
        if self.measure(&best, Part::Near, length).is_err() {
            return true;
        }
        loop {
            let before = best.clone();
            for neighbour in self.space.neighbours(&before) {
                if self.figures(&neighbour, length).is_some() {
                    continue;
                }
                if self.is_over(NEAR_UNTIL) {
                    return false;
                }
                if self.is_better(&neighbour, &best, length) {
                    best = neighbour;
                }
            }
            if best == before {
                return true;
            }
        }
    }

    /// Whether a new choice is better than the best: measured once, and where it promises something both once more.
    fn is_better(&mut self, new: &Candidate, best: &Candidate, length: Duration) -> bool {
        let Ok(figure) = self.measure(new, Part::Near, length) else {
            return false;
        };
        let promised = self
            .figures(best, length)
            .map_or(f64::INFINITY, |known| self.goal.ratio(figure, known));
        if promised < PROMISE {
            return false;
        }
        let again =
            self.measure(best, Part::Near, length).is_ok() && self.measure(new, Part::Near, length).is_ok();
        let medians = self.figures(new, length).zip(self.figures(best, length));
        again && medians.is_some_and(|(new, best)| self.goal.ratio(new, best) >= PROMISE)
    }

    /// The last two in turns. False when the time ended it.
    fn in_turns(&mut self, length: Duration) -> bool {
        let Some((one, other)) = self.last_two(length) else {
            return true;
        };
        for turn in 0..TURNS {
            // Whoever comes first profits or suffers from what was before: it takes turns too.
            let pair = if turn % 2 == 0 {
                [&one, &other]
            } else {
                [&other, &one]
            };
            for candidate in pair {
                if self.is_over(1.0) {
                    return false;
                }
                let _ = self.measure(candidate, Part::Final, length);
            }
        }
        true
    }

    /// The best two of the longest trials.
    fn last_two(&self, length: Duration) -> Option<(Candidate, Candidate)> {
        let mut known: Vec<(&Candidate, f64)> = Vec::new();
        for trial in self.trials.iter().filter(|trial| trial.length == length) {
            if let Some(figure) = self.figures(&trial.candidate, length)
                && known.iter().all(|(candidate, _)| *candidate != &trial.candidate)
            {
                known.push((&trial.candidate, figure));
            }
        }
        known.sort_by(|one, other| self.goal.ratio(other.1, one.1).total_cmp(&1.0));
        match known.as_slice() {
            [(one, _), (other, _), ..] => Some(((*one).clone(), (*other).clone())),
            _ => None,
        }
    }

    /// The choice by what is known, with the reason. `partial` says what is missing.
    pub(super) fn found(&self, partial: Option<String>) -> Option<Found> {
        let (best, figure) = self.best()?;
        let rivals = self.of_final(&best);
        let other = self
            .trials
            .iter()
            .find(|trial| trial.part == Part::Final && trial.candidate != best);
        let Some((other, theirs)) = other.map(|trial| (&trial.candidate, self.of_final(&trial.candidate)))
        else {
            let reason =
                "the best figure of its longest trials; no other came near enough to be compared in turns"
                    .to_owned();
            return Some(Found {
                candidate: best,
                figure,
                reason,
                partial,
            });
        };
        if rivals.len().min(theirs.len()) < LEAST_TURNS {
            let reason = "the best figure so far; the comparison with the second was not finished".to_owned();
            return Some(Found {
                candidate: best,
                figure,
                reason,
                partial,
            });
        }
        let ratio = Ratio::of(self.goal, &rivals, &theirs);
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let numbers = format!(
            "{:+.2} % by medians of {} and {} trials in turns, 95 % interval {:+.2} to {:+.2} %",
            percent(ratio.median),
            rivals.len(),
            theirs.len(),
            percent(ratio.interval.0),
            percent(ratio.interval.1)
        );
        let (candidate, reason) = if ratio.is_better() {
            (best, format!("better than the second: {numbers}"))
        } else if ratio.is_worse() || Space::cost(other) < Space::cost(&best) {
            let why = if ratio.is_worse() {
                "better than the first"
            } else {
                "not to be told from the first, and cheaper"
            };
            (other.clone(), format!("{why}, which has {numbers}"))
        } else {
            (
                best,
                format!("not to be told from the second, and no dearer: {numbers}"),
            )
        };
        let figure = median(&self.of_final(&candidate));
        Some(Found {
            candidate,
            figure,
            reason,
            partial,
        })
    }

    /// The best choice and its figure, by its longest trials; longer trials count more than better figures.
    fn best(&self) -> Option<(Candidate, f64)> {
        let longest = self
            .trials
            .iter()
            .filter(|trial| trial.outcome.is_ok())
            .map(|trial| trial.length)
            .max()?;
        let mut best: Option<(&Candidate, f64)> = None;
        for trial in self.trials.iter().filter(|trial| trial.length == longest) {
            if let Some(figure) = self.figures(&trial.candidate, longest)
                && best.is_none_or(|(_, known)| self.goal.ratio(figure, known) > 1.0)
            {
                best = Some((&trial.candidate, figure));
            }
        }
        best.map(|(candidate, figure)| (candidate.clone(), figure))
    }

    /// The median figure of a choice in trials of that length.
    fn figures(&self, candidate: &Candidate, length: Duration) -> Option<f64> {
        let of = |trial: &&Trial| trial.candidate == *candidate && trial.length == length;
        let figures: Vec<f64> = self
            .trials
            .iter()
            .filter(of)
            .filter_map(|trial| trial.outcome.as_ref().ok().copied())
            .collect();
        (!figures.is_empty()).then(|| median(&figures))
    }

    /// A choice's figures of the last turns.
    fn of_final(&self, candidate: &Candidate) -> Vec<f64> {
        let of = |trial: &&Trial| trial.part == Part::Final && trial.candidate == *candidate;
        self.trials
            .iter()
            .filter(of)
            .filter_map(|trial| trial.outcome.as_ref().ok().copied())
            .collect()
    }

    fn measure(&mut self, candidate: &Candidate, part: Part, length: Duration) -> Result<f64, String> {
        let best = self.best().map(|(_, figure)| figure);
        let outcome = self.stand.measure(&self.space.settings(candidate), length, best);
        self.trials.push(Trial {
            candidate: candidate.clone(),
            part,
            length,
            outcome: outcome.clone(),
        });
        let found = self.found(Some(
            "the search was still going on when this was written".to_owned(),
        ));
        (self.observe)(&self.trials, found.as_ref());
        outcome
    }

    fn is_over(&self, share: f64) -> bool {
        self.stand.spent() >= self.limit.mul_f64(share)
    }
}

#[cfg(test)]
mod tests;
