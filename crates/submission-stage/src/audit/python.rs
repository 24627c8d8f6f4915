//! Formats numbers as the official scripts print them, like Python's `repr` of a float.

/// Formats a number with the shortest digits that parse back, with an exponent below 1e-4 and from 1e16.
pub(super) fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(-4..=15) => {
            let plain = value.to_string();
            if plain.contains('.') {
                plain
            } else {
                format!("{plain}.0")
            }
        }
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        Err(_) => scientific,
    }
}

#[cfg(test)]
mod tests {
    use super::float_repr;

    #[test]
    fn numbers_print_as_in_python() {
        // The expected texts are from CPython 3.11.
        for (value, printed) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (646_245.0, "646245.0"),
            (1547.400753584167, "1547.400753584167"),
            (0.1 + 0.2, "0.30000000000000004"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (0.000012345, "1.2345e-05"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(float_repr(value), printed);
        }
    }
}
