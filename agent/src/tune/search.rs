//! The search for the best choice within a time limit. It has three parts: coarse rounds, steps to better neighbours,
//! and an alternating comparison of the last two. Each coarse round keeps half of the choices and doubles the time per
//! trial. The search drives a [`TestBench`] and does not start processes or read clocks itself.

use std::time::Duration;

use regatta_types::engine_settings::EngineSettings;

use super::{
    compare::{Goal, Ratio, median},
    space::{Candidate, Space},
    trial_failure::TrialFailure,
};

/// A source of measurements.
pub(super) trait TestBench {
    /// Measures a choice for about `length` and returns the scenario's figure. `best` is the best figure so far.
    ///
    /// # Errors
    /// When the choice does not run.
    fn measure(
        &mut self,
        settings: &EngineSettings,
        length: Duration,
        best: Option<f64>,
    ) -> Result<f64, TrialFailure>;

    /// Returns the time since the search started.
    fn spent(&self) -> Duration;
}

/// The part of the search that a trial belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The first rounds: a few choices that are spread over the search space.
    Coarse,
    /// Steps from the best choice to its neighbours.
    Near,
    /// The alternating comparison of the last two.
    Final,
}

/// One measurement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trial {
    /// The choice.
    pub(super) candidate: Candidate,
    /// The part of the search.
    pub(super) part: Part,
    /// The requested length.
    pub(super) length: Duration,
    /// The figure, or why there is none.
    pub(super) outcome: Result<f64, TrialFailure>,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// The choice.
    pub(super) candidate: Candidate,
    /// Its median figure over the longest trials.
    pub(super) figure: f64,
    /// Why it was chosen.
    pub(super) reason: String,
    /// Why the result is partial, if it is.
    pub(super) partial: Option<String>,
}

/// A search in progress.
pub(super) struct Search<'a, S> {
    pub(super) space: &'a Space,
    pub(super) goal: Goal,
    pub(super) bench: S,
    /// The time limit.
    pub(super) limit: Duration,
    /// Configurations to try unchanged.
    pub(super) seeds: Vec<Candidate>,
    /// All measurements so far.
    pub(super) trials: Vec<Trial>,
    /// Called after every trial.
    pub(super) observe: &'a mut dyn FnMut(&[Trial], Option<&Found>),
}

/// The shares of the time at which the coarse rounds and the steps must end.
const COARSE_UNTIL: f64 = 0.45;
const NEAR_UNTIL: f64 = 0.75;
/// Number of first trials that fit into the time limit.
const TRIALS: u32 = 300;
/// The shortest and the longest first trial.
const FIRST: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// Factor between the lengths of later trials and first trials.
const LONGER: u32 = 4;
/// Rounds of the final comparison.
const TURNS: usize = 5;
/// Fewest rounds for a bootstrap. A single figure of each choice would always appear certain.
const MIN_TURNS: usize = 3;
/// Smallest improvement for which a step is measured again.
const PROMISE: f64 = 1.003;

impl<S: TestBench> Search<'_, S> {
    /// Searches until it is complete or the time is over. Returns `None` if no choice runs.
    pub(super) fn run(&mut self) -> Option<Found> {
        let first = (self.limit / TRIALS).clamp(FIRST.0, FIRST.1);
        let mut done = self.coarse(first);
        done &= self.near(first * LONGER);
        done &= self.in_turns(first * LONGER);
        let partial = format!("the limit of {:.0?} ended the search early", self.limit);
        self.found((!done).then_some(partial))
    }

    /// Runs the coarse rounds. Returns `false` if the time was too short for the first round.
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
            let requested = round.len();
            for candidate in round {
                // At least one choice must be measured, however short the time is.
                if self.is_over(COARSE_UNTIL) && self.best().is_some() {
                    return requested < whole;
                }
                if let Ok(figure) = self.measure(&candidate, Part::Coarse, length) {
                    measured.push((candidate, figure));
                }
            }
            measured.sort_by(|one, other| self.goal.ratio(other.1, one.1).total_cmp(&1.0));
            measured.truncate(measured.len().div_ceil(2));
            round = measured.into_iter().map(|(candidate, _)| candidate).collect();
            if round.len() < 2 || requested <= 2 {
                return true;
            }
            length = (length * 2).min(first * LONGER);
        }
    }

    /// Steps to neighbours while they are better. Returns `false` if the time limit ended the steps.
    fn near(&mut self, length: Duration) -> bool {
        let Some((mut best, _)) = self.best() else {
            return true;
        };
        // Figures of shorter trials are not comparable, so the best choice is measured again.
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
                if self.measure_whether_better(&neighbour, &best, length) {
                    best = neighbour;
                }
            }
            if best == before {
                return true;
            }
        }
    }

    /// Returns whether a new choice is better than the best. Measures it once. If it is promising, measures both once
    /// more.
    fn measure_whether_better(&mut self, new: &Candidate, best: &Candidate, length: Duration) -> bool {
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

    /// Measures the last two choices alternately. Returns `false` if the time limit ended the comparison.
    fn in_turns(&mut self, length: Duration) -> bool {
        let Some((one, other)) = self.last_two(length) else {
            return true;
        };
        for turn in 0..TURNS {
            // The first measurement of a round is affected by what ran before, so the order alternates.
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

    /// Returns the best two choices of the longest trials.
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

    /// Returns the best choice so far, with the reason. `partial` states why the search is incomplete.
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
                "the best figure of its longest trials; no other was close enough to be compared in alternation"
                    .to_owned();
            return Some(Found {
                candidate: best,
                figure,
                reason,
                partial,
            });
        };
        if rivals.len().min(theirs.len()) < MIN_TURNS {
            let reason = "the best figure; the comparison with the second best was not finished".to_owned();
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
            "{:+.2} % by medians of {} and {} alternating trials, 95 % interval {:+.2} to {:+.2} %",
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
                "not distinguishable from the first, and cheaper"
            };
            (other.clone(), format!("{why}, which has {numbers}"))
        } else {
            (
                best,
                format!("not distinguishable from the second, and not more expensive: {numbers}"),
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

    /// Returns the best choice and its figure. Only the longest trials count.
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

    /// Returns the median figure of a choice in trials of `length`.
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

    /// Returns a choice's figures in the final comparison.
    fn of_final(&self, candidate: &Candidate) -> Vec<f64> {
        let of = |trial: &&Trial| trial.part == Part::Final && trial.candidate == *candidate;
        self.trials
            .iter()
            .filter(of)
            .filter_map(|trial| trial.outcome.as_ref().ok().copied())
            .collect()
    }

    fn measure(&mut self, candidate: &Candidate, part: Part, length: Duration) -> Result<f64, TrialFailure> {
        let best = self.best().map(|(_, figure)| figure);
        let outcome = self.bench.measure(&self.space.settings(candidate), length, best);
        self.trials.push(Trial {
            candidate: candidate.clone(),
            part,
            length,
            outcome: outcome.clone(),
        });
        let found = self.found(Some(
            "the search was not finished when this was written".to_owned(),
        ));
        (self.observe)(&self.trials, found.as_ref());
        outcome
    }

    fn is_over(&self, share: f64) -> bool {
        self.bench.spent() >= self.limit.mul_f64(share)
    }
}

#[cfg(test)]
mod tests;
