//! Tests that change points equal Apache Otava's, on short series with one step and on random ones.
//!
//! `tests/oracles/otava` installs it; `REGATTA_SERIES=N` sets the number of random series.

use std::{env, ffi::OsStr};

use regatta_compare::change_points::change_points;
use regatta_test_support::oracle;
use serde_json::Value;

#[test]
fn change_points_are_those_of_apache_otava() {
    let Some(python) = oracle::otava() else { return };
    let count = env::var("REGATTA_SERIES").unwrap_or_else(|_| "300".to_owned());
    let printed = oracle::run(
        &python,
        "otava",
        "change_points.py",
        &["1", &count].map(OsStr::new),
    );
    let (mut compared, mut with_points) = (0, 0);
    for line in printed.lines() {
        let document: Value = serde_json::from_str(line).unwrap();
        let numbers = |value: &Value| -> Vec<f64> {
            value
                .as_array()
                .unwrap()
                .iter()
                .map(|n| n.as_f64().unwrap())
                .collect()
        };
        let expected: Vec<Vec<f64>> = document["points"]
            .as_array()
            .unwrap()
            .iter()
            .map(numbers)
            .collect();
        let found = change_points(&numbers(&document["series"]));
        assert_eq!(found.len(), expected.len(), "{found:?} {line}");
        for (found, expected) in found.iter().zip(&expected) {
            let values = [found.position as f64, found.mean_before, found.mean_after];
            for (value, expected) in values.iter().zip(expected) {
                assert!(
                    (value - expected).abs() <= expected.abs() * 1e-9,
                    "{found:?} {line}"
                );
            }
            // Below this, the last digits of a sum decide.
            let is_equal = (found.p_value - expected[3]).abs() <= expected[3] * 1e-6;
            assert!(is_equal || found.p_value < 1e-12, "{found:?} {line}");
        }
        compared += 1;
        with_points += usize::from(!found.is_empty());
    }
    println!("{compared} series, {with_points} with change points");
    assert!(
        compared > 100 && with_points * 3 > compared,
        "{with_points} of {compared}"
    );
}
