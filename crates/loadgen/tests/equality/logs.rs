//! Reads logs as plain text, so that formatting is compared and not only meaning.

/// Keys and their values, as written, in order.
pub(crate) fn detail_lines(text: &str) -> Vec<(String, String)> {
    text.lines()
        .map(|line| {
            let rest = line.strip_prefix(":::MLLOG {\"key\": \"").unwrap();
            let (key, rest) = rest.split_once("\", \"value\": ").unwrap();
            let (value, _) = rest.rsplit_once(", \"time_ms\": ").unwrap();
            // The official LoadGen prints invalid JSON here. Ours prints numbers that Python reads.
            let value = match value {
                "inf" => "Infinity",
                "-inf" => "-Infinity",
                "nan" | "-nan" => "NaN",
                other => other,
            };
            (key.to_owned(), value.to_owned())
        })
        .collect()
}

/// Removes the records in which the logger and the clocks describe themselves.
pub(crate) fn without_log_facts(mut lines: Vec<(String, String)>) -> Vec<(String, String)> {
    const OF_ITSELF: [&str; 3] = ["Logging allocation", "PerfClock", "CAS failed."];
    let of_itself = |text: &str| OF_ITSELF.iter().any(|part| text.contains(part));
    lines.retain(|(key, value)| !(key.starts_with("logger_") || of_itself(value)));
    lines
}

/// Returns the summary without numbers, verdicts and advice, which depend on the clock; parameters have their values.
pub(crate) fn summary_labels(text: &str) -> Vec<String> {
    let (results, parameters) = text.split_once("Test Parameters Used").unwrap_or((text, ""));
    // Blank lines are where the clock decides whether there is a paragraph.
    let advice = |line: &str| {
        const STARTS: [&str; 7] = [
            " *",
            "Recommendations",
            "   See",
            " early",
            " least",
            " with the",
            " query were",
        ];
        line.is_empty() || STARTS.iter().any(|start| line.starts_with(start))
    };
    let labels = results
        .lines()
        .filter(|line| !advice(line) && !line.contains("encountered"))
        .map(|line| {
            let end = line.find(':').map_or(line.len(), |colon| colon + 1);
            line[..end].to_owned()
        });
    let parameters = parameters.lines().skip(2).take_while(|line| !line.is_empty());
    labels.chain(parameters.map(str::to_owned)).collect()
}
