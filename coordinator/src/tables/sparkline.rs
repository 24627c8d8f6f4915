//! A series of figures as a row of bars, one character each, for tables on a terminal. The page draws plots instead.

/// The bars, from the least value shown to the largest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The bar of a series without differences.
const EQUAL: char = '▄';

/// Returns the last `columns` values as bars. Their height is relative to the values shown; values that are not finite have none.
pub(super) fn sparkline(values: &[f64], columns: usize) -> String {
    let shown = &values[values.len().saturating_sub(columns)..];
    let finite = || shown.iter().copied().filter(|value| value.is_finite());
    let least = finite().fold(f64::INFINITY, f64::min);
    let range = finite().fold(f64::NEG_INFINITY, f64::max) - least;
    let bar = |value: &f64| match (value - least) / range * (BARS.len() - 1) as f64 {
        _ if !value.is_finite() => ' ',
        height if height.is_finite() => BARS[(height.round() as usize).min(BARS.len() - 1)],
        _ => EQUAL,
    };
    shown.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_relative_to_the_newest_values() {
        assert_eq!(sparkline(&[900.0, 1.0, 2.0, 3.0, 8.0], 4), "▁▂▃█");
        assert_eq!(sparkline(&[5.0, 5.0, 5.0], 4), "▄▄▄");
        assert_eq!(sparkline(&[7.0], 4), "▄");
        assert_eq!(sparkline(&[], 4), "");
        assert_eq!(sparkline(&[1.0, f64::NAN, 2.0, f64::INFINITY], 4), "▁ █ ");
    }

    proptest::proptest! {
        #[test]
        fn any_series_has_a_bar_for_each_value(values in proptest::collection::vec(proptest::num::f64::ANY, 0..40), columns in 0_usize..20) {
            let line = sparkline(&values, columns);
            proptest::prop_assert_eq!(line.chars().count(), values.len().min(columns));
        }
    }
}
