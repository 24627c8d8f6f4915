//! Recomputes the score of the accuracy data set from the scores of its subsets.

use regatta_catalogue::round::{PrescribedRun, ScoreCategory};
use serde_json::{Map, Value};

use super::{EndpointsJudge, prescribed::at};
use crate::check::{finding::Findings, rules};

/// The tolerance for percentages with two decimal places.
const TWO_PLACES: f64 = 0.006;
const FIX: &str = "put the harness's document of the accuracy run there";

impl EndpointsJudge<'_> {
    /// Checks the breakdown of the accuracy data set's score, and the bound of its normalized score.
    pub(super) fn breakdown(&self, findings: &mut Findings) {
        let (Some(run), Some(entry)) = (self.prescribed, self.accuracy_scores().next()) else {
            return;
        };
        let path = &self.documents.accuracy.path;
        let Some(Value::Object(stated)) = entry.get("breakdown") else {
            return findings.error(
                rules::ACCURACY,
                path,
                "the breakdown of the score is missing",
                FIX,
            );
        };
        let bound = &run.normalized;
        match stated.get(&bound.metric).and_then(Value::as_f64) {
            Some(score) if score >= bound.value() => {}
            found => {
                let found = found.map_or_else(|| "missing".to_owned(), |found| found.to_string());
                let text = format!(
                    "{} is {found}, at least {} is needed",
                    bound.metric,
                    bound.value()
                );
                let fix = "meet the accuracy target, or submit to the open division";
                findings.error(rules::ACCURACY, path, text, fix);
            }
        }
        let breakdown = Breakdown { run, stated };
        let mut faults = breakdown.faults();
        let score = entry
            .get("score")
            .and_then(Value::as_f64)
            .map(|score| score * 100.0);
        if let (Some(score), Some(overall)) = (score, breakdown.number("overall_accuracy"))
            && (score - overall).abs() > TWO_PLACES
        {
            faults.push(format!("the score is {score:.2} %, overall_accuracy {overall} %"));
        }
        for name in ["total_samples", "issued_samples"] {
            let of_entry = entry.get("total_samples").and_then(Value::as_f64);
            if breakdown.number(name) != of_entry {
                faults.push(format!(
                    "{name} of the breakdown differs from total_samples of the score"
                ));
            }
        }
        for fault in faults {
            findings.error(rules::ENDPOINTS_FIGURES, path, format!("breakdown: {fault}"), FIX);
        }
    }
}

/// The fault of a subset's score.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
enum SubsetError {
    #[error("the score of {0} is missing")]
    Missing(String),
    #[error("{score} % of the {samples} samples of {subset} is not an integer")]
    NotAnInteger {
        subset: String,
        score: f64,
        samples: u64,
    },
}

struct Breakdown<'a> {
    run: &'a PrescribedRun,
    stated: &'a Map<String, Value>,
}

impl Breakdown<'_> {
    fn number(&self, name: &str) -> Option<f64> {
        self.stated.get(name).and_then(Value::as_f64)
    }

    /// Returns the number of correct samples of a subset, or the fault of its score.
    fn correct(&self, subset: &str, samples: u64) -> Result<f64, SubsetError> {
        let scores = self.stated.get("subset_scores");
        let score = scores
            .and_then(|scores| scores.get(subset))
            .and_then(Value::as_f64);
        let score = score.ok_or_else(|| SubsetError::Missing(subset.to_owned()))?;
        let number = samples as f64;
        let correct = (score / 100.0 * number).round();
        let made = correct / number * 100.0;
        match (made - score).abs() <= TWO_PLACES && (0.0..=number).contains(&correct) {
            true => Ok(correct),
            false => Err(SubsetError::NotAnInteger {
                subset: subset.to_owned(),
                score,
                samples,
            }),
        }
    }

    /// Recomputes all figures from the subsets.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let categories = &self.run.categories;
        let subsets = categories
            .values()
            .flat_map(|category| &category.groups)
            .flatten();
        let known = subsets.clone().count();
        let stated = self.stated.get("subset_scores").and_then(Value::as_object);
        let stated = stated.map_or(0, Map::len);
        let unscored = self.stated.get("unscored_subsets").and_then(Value::as_object);
        if stated != known || unscored.is_some_and(|unscored| !unscored.is_empty()) {
            faults.push(format!("{stated} subsets have a score, the data set has {known}"));
        }
        let (mut correct, mut samples) = (0.0, 0.0);
        for (subset, &count) in subsets {
            match self.correct(subset, count) {
                Ok(of_subset) => correct += of_subset,
                Err(error) => faults.push(error.to_string()),
            }
            samples += count as f64;
        }
        // A figure of subsets without a score cannot be recomputed.
        if !faults.is_empty() {
            return faults;
        }
        let scores: Vec<_> = categories
            .iter()
            .filter_map(|(name, category)| Some((name, self.category(category)?)))
            .collect();
        let mean = scores.iter().map(|(_, score)| score).sum::<f64>() / scores.len() as f64;
        let of_categories = scores.into_iter().map(|(name, score)| {
            let stated = at(
                &Value::Object(self.stated.clone()),
                &format!("category_scores.{name}"),
            )
            .and_then(Value::as_f64);
            (name.clone(), stated, score)
        });
        let normalized = self.run.normalized.metric.clone();
        let stated = self.number(&normalized);
        let overall = "overall_accuracy".to_owned();
        let all = of_categories.chain([
            (normalized, stated, mean),
            (
                overall,
                self.number("overall_accuracy"),
                correct / samples * 100.0,
            ),
        ]);
        faults.extend(all.filter_map(|(name, stated, made)| {
            let close = stated.is_some_and(|stated| (stated - made).abs() <= TWO_PLACES);
            let stated = stated.map_or_else(|| "missing".to_owned(), |stated| stated.to_string());
            (!close).then(|| format!("{name} is {stated}, the subsets make {made:.2}"))
        }));
        faults
    }

    /// Computes the score of a category in percent.
    fn category(&self, category: &ScoreCategory) -> Option<f64> {
        let mut sum = 0.0;
        for group in &category.groups {
            let (mut shares, mut correct, mut samples) = (0.0, 0.0, 0.0);
            for (subset, &count) in group {
                let of_subset = self.correct(subset, count).ok()?;
                shares += of_subset / count as f64;
                correct += of_subset;
                samples += count as f64;
            }
            sum += match category.weighted {
                true => correct / samples,
                false => shares / group.len() as f64,
            };
        }
        Some(sum / category.groups.len() as f64 * 100.0)
    }
}
