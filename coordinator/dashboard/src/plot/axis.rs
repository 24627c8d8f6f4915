//! An axis of a plot: the position of a value on it, and the values that it names.

/// The spread of values over an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Equal differences are equally long.
    Linear,
    /// Equal ratios are equally long.
    Logarithmic,
    /// Shares from 0 to 1; each further nine (90 %, 99 %, 99.9 %) is equally long.
    Nines,
}

#[derive(Debug, Clone)]
pub(crate) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    /// Its quantity, with the unit.
    pub(crate) title: String,
}

/// The place of the share 1 on the scale of nines, which would be infinitely far.
const LAST_NINE: f64 = 3.5;

impl Axis {
    /// Creates an axis that covers the values from `low` to `high`, with a little space where both are equal.
    pub(crate) fn covering(scale: Scale, [low, high]: [f64; 2], title: impl Into<String>) -> Self {
        let space = if high > low {
            0.0
        } else {
            (low.abs() * 0.1).max(1e-6)
        };
        let (low, high) = match scale {
            Scale::Nines => (0.0, 1.0),
            Scale::Logarithmic => ((low - space).max(low * 0.5).max(f64::MIN_POSITIVE), high + space),
            Scale::Linear => (low - space, high + space),
        };
        Self {
            scale,
            low,
            high,
            title: title.into(),
        }
    }

    /// Returns the place of a value, from 0 at the beginning of the axis to 1 at its end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let (low, high) = (self.transformed(self.low), self.transformed(self.high));
        ((self.transformed(value) - low) / (high - low)).clamp(0.0, 1.0)
    }

    fn transformed(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.max(f64::MIN_POSITIVE).log10(),
            Scale::Nines if value >= 1.0 => LAST_NINE,
            Scale::Nines => -(1.0 - value.max(0.0)).log10(),
        }
    }

    /// Returns the values that are named, with their texts.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Nines => [
                (0.0, "0 %"),
                (0.5, "50 %"),
                (0.9, "90 %"),
                (0.97, "97 %"),
                (0.99, "99 %"),
                (0.999, "99.9 %"),
                (1.0, "100 %"),
            ]
            .map(|(value, text)| (value, text.to_owned()))
            .into(),
            Scale::Logarithmic => self.logarithmic_ticks(),
            Scale::Linear => self.linear_ticks(),
        }
    }

    fn linear_ticks(&self) -> Vec<(f64, String)> {
        /// The least number of named values.
        const MIN: f64 = 4.0;
        let range = self.high - self.low;
        let power = 10f64.powf((range / MIN).log10().floor());
        let step = [5.0, 2.0, 1.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| range / step >= MIN)
            .unwrap_or(power);
        let decimals = usize::try_from(-(step.log10().floor() as i64))
            .unwrap_or(0)
            .min(6);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last.min(first + 20))
            .map(|number| {
                let value = number as f64 * step;
                (value, format!("{value:.decimals$}"))
            })
            .collect()
    }

    fn logarithmic_ticks(&self) -> Vec<(f64, String)> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let factors: &[f64] = if last - first > 3 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let powers = (first..=last.min(first + 18)).map(|exponent| 10f64.powi(exponent));
        powers
            .flat_map(|power| factors.iter().map(move |factor| factor * power))
            .filter(|value| (self.low..=self.high).contains(value))
            .map(|value| (value, regatta_text::significant(value, 1)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn round_values_are_named() {
        let axis = Axis::covering(Scale::Linear, [0.0, 61.0], "s");
        assert_eq!(texts(&axis), ["0", "10", "20", "30", "40", "50", "60"]);
        let axis = Axis::covering(Scale::Linear, [44.9, 46.2], "C");
        assert_eq!(
            texts(&axis),
            ["45.0", "45.2", "45.4", "45.6", "45.8", "46.0", "46.2"]
        );
        let axis = Axis::covering(Scale::Logarithmic, [0.61, 9.7], "ms");
        assert_eq!(texts(&axis), ["1", "2", "5"]);
    }

    #[test]
    fn each_nine_is_equally_long() {
        let axis = Axis::covering(Scale::Nines, [0.0, 1.0], "");
        let between = |one, other| axis.place(other) - axis.place(one);
        assert!((between(0.9, 0.99) - between(0.99, 0.999)).abs() < 1e-9);
        assert_eq!((axis.place(0.0), axis.place(1.0)), (0.0, 1.0));
    }

    proptest::proptest! {
        #[test]
        fn every_value_has_a_place(low in -1e12_f64..1e12, more in 0.0_f64..1e12, value in proptest::num::f64::NORMAL) {
            for scale in [Scale::Linear, Scale::Logarithmic, Scale::Nines] {
                let axis = Axis::covering(scale, [low, low + more], "");
                let place = axis.place(value);
                proptest::prop_assert!((0.0..=1.0).contains(&place), "{axis:?} {place}");
                proptest::prop_assert!(axis.ticks().len() < 60);
            }
        }
    }
}
