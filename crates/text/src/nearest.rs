//! The known name that a user probably meant.

/// Names below this similarity are unlikely to be typing errors.
const ALIKE: f64 = 0.85;

/// Returns the name that is most similar to `name`, if one is similar enough. Case and `-` for `_` make no difference.
pub fn nearest<'a>(name: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| name.to_ascii_lowercase().replace('-', "_");
    let name = plain(name);
    among
        .into_iter()
        .map(|known| (strsim::jaro_winkler(&name, &plain(known)), known))
        .filter(|&(likeness, _)| likeness >= ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typing_error_has_a_nearest_name_and_another_word_has_none() {
        let known = ["min_query_count", "max_query_count", "target_qps"];
        assert_eq!(nearest("min_query_cuont", known), Some("min_query_count"));
        assert_eq!(nearest("Target-QPS", known), Some("target_qps"));
        assert_eq!(nearest("batch", known), None);
    }
}
