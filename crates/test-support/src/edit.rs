//! Edits of a submission's files that introduce a single fault.

use std::{fs, path::Path};

/// Replaces or drops lines. `change` gets each line with its line break.
///
/// # Panics
/// When nothing changes.
pub fn lines(path: &Path, mut change: impl FnMut(&str) -> Option<String>) {
    let text = fs::read_to_string(path).unwrap();
    let changed: String = text.split_inclusive('\n').filter_map(&mut change).collect();
    assert_ne!(text, changed, "nothing to change in {}", path.display());
    fs::write(path, changed).unwrap();
}

/// Sets the value of a key's first record in a detail log.
pub fn log_value(path: &Path, key: &str, value: &str) {
    let key = format!("\"key\": \"{key}\"");
    let mut done = false;
    lines(path, |line| {
        if done || !line.contains(&key) {
            return Some(line.to_owned());
        }
        done = true;
        let start = line.find("\"value\": ").unwrap() + "\"value\": ".len();
        let end = line.rfind(", \"time_ms\"").unwrap();
        Some(format!("{}{value}{}", &line[..start], &line[end..]))
    });
}

/// Repeats a detail log's last record, marked as an error.
pub fn append_error_line(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let last = text.lines().last().unwrap();
    append(
        path,
        &format!("{}\n", last.replace("\"is_error\": false", "\"is_error\": true")),
    );
}

/// Appends to a file.
pub fn append(path: &Path, more: &str) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, text + more).unwrap();
}

/// Sets the top-1 accuracy and the matching count of good samples.
pub fn accuracy(path: &Path, value: &str) {
    lines(path, |line| match line.strip_prefix("accuracy=") {
        Some(rest) => {
            let (_, total) = rest.split_once("total=").unwrap();
            let samples: f64 = total.trim().parse().unwrap();
            let good = (value.parse::<f64>().unwrap() / 100.0 * samples).round();
            Some(format!("accuracy={value}%, good={good}, total={total}"))
        }
        None => Some(line.to_owned()),
    });
}

/// Sets the top-1 accuracy only, so that it contradicts the count of good samples.
pub fn accuracy_alone(path: &Path, value: &str) {
    lines(path, |line| match line.strip_prefix("accuracy=") {
        Some(rest) => Some(format!("accuracy={value}{}", &rest[rest.find('%').unwrap()..])),
        None => Some(line.to_owned()),
    });
}

/// Removes the lines that begin with `start`.
pub fn drop_lines(path: &Path, start: &str) {
    lines(path, |line| (!line.starts_with(start)).then(|| line.to_owned()));
}

/// Sets a text field of a JSON file.
pub fn json_text(path: &Path, field: &str, value: &str) {
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    json[field] = value.into();
    fs::write(path, json.to_string()).unwrap();
}

/// Returns the first column of a CSV file, paired with another column.
#[must_use]
pub fn csv_column(text: &str, column: usize) -> Vec<(String, String)> {
    let rows = text.lines().skip(1).map(|line| {
        let (mut fields, mut quoted) = (vec![String::new()], false);
        let mut characters = line.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '"' if quoted && characters.peek() == Some(&'"') => {
                    characters.next();
                    fields.last_mut().unwrap().push('"');
                }
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(String::new()),
                other => fields.last_mut().unwrap().push(other),
            }
        }
        (fields[0].clone(), fields[column].clone())
    });
    rows.collect()
}
