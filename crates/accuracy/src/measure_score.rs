//! Computes the metrics for benchmarks of one's own from the files of a benchmark.

use std::path::Path;

use regatta_datasets::val_map::ValMap;
use regatta_mllog::read::{MAX_RESPONSE, accuracy_file};
use regatta_types::benchmark::{AccuracyMetric, Benchmark};

use crate::{
    expected_values::ExpectedValues,
    measure_error::MeasureError,
    score::{Score, auc, exact_match, mean_squared_error, top5},
};

pub(crate) fn measure_score(
    benchmark: &Benchmark,
    log: &Path,
    scratch: &Path,
) -> Result<Score, MeasureError> {
    let name = || benchmark.name.clone();
    let entries = accuracy_file(log)
        .map_err(|source| MeasureError::Open {
            path: log.to_owned(),
            source,
        })?
        .with_max_response(MAX_RESPONSE);
    let map = || {
        ValMap::read(&scratch.join(&benchmark.dataset.map)).map_err(|source| MeasureError::Map {
            benchmark: name(),
            source,
        })
    };
    let expected = || {
        let accuracy = &benchmark.accuracy;
        let path = accuracy.expected.as_ref();
        let path = path.ok_or_else(|| MeasureError::NoExpected { benchmark: name() })?;
        ExpectedValues::read(&scratch.join(path), benchmark.dataset.total_samples).map_err(|source| {
            MeasureError::ExpectedValues {
                benchmark: name(),
                source,
            }
        })
    };
    let dtype = benchmark.accuracy.response_dtype;
    let score = match benchmark.accuracy.metric {
        AccuracyMetric::Top5 => top5(entries, &map()?, dtype, benchmark.model.class_offset),
        AccuracyMetric::Auc => auc(entries, &map()?, dtype),
        AccuracyMetric::MeanSquaredError => mean_squared_error(entries, &expected()?, dtype),
        AccuracyMetric::ExactMatch => exact_match(entries, &expected()?),
        _ => return Err(MeasureError::NeedsScript { benchmark: name() }),
    };
    score.map_err(|source| MeasureError::Score {
        path: log.to_owned(),
        source,
    })
}
