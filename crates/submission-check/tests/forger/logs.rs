//! Detail logs and summaries for a forger: records and lines that can be rewritten.

/// The records of a detail log, one a line.
pub(crate) struct Log(Vec<String>);

impl Log {
    pub(crate) fn of(text: &str) -> Self {
        Self(text.split_inclusive('\n').map(str::to_owned).collect())
    }

    pub(crate) fn text(&self) -> String {
        self.0.concat()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.text().into_bytes()
    }

    /// The line of a key's first record, and where its value begins and ends.
    fn find(&self, key: &str) -> Option<(usize, usize, usize)> {
        let start = format!(":::MLLOG {{\"key\": \"{key}\", \"value\": ");
        let line = self.0.iter().position(|line| line.starts_with(&start))?;
        let end = self.0[line].rfind(", \"time_ms\"")?;
        Some((line, start.len(), end))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let (line, begin, end) = self.find(key)?;
        self.0[line].get(begin..end)
    }

    /// Returns a text value without its quotes.
    pub(crate) fn word(&self, key: &str) -> Option<&str> {
        Some(self.get(key)?.trim_matches('"'))
    }

    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.parse().ok()
    }

    /// Writes another value. Returns whether it differs from the earlier one.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> bool {
        let Some((line, begin, end)) = self.find(key) else {
            return false;
        };
        let old = self.0[line].clone();
        self.0[line] = format!("{}{value}{}", &old[..begin], &old[end..]);
        self.0[line] != old
    }

    /// Scales a number; an integer stays an integer.
    pub(crate) fn scale(&mut self, key: &str, factor: f64) -> bool {
        let Some(old) = self.get(key).map(str::to_owned) else {
            return false;
        };
        let Ok(number) = old.parse::<f64>() else {
            return false;
        };
        let value = match old.contains(['.', 'e']) {
            true => six_digits(number * factor),
            false => format!("{:.0}", number * factor),
        };
        self.set(key, &value)
    }

    pub(crate) fn remove(&mut self, key: &str) -> bool {
        let found = self.find(key);
        if let Some((line, ..)) = found {
            self.0.remove(line);
        }
        found.is_some()
    }

    /// Repeats a key's record after it, with another value.
    pub(crate) fn repeat(&mut self, key: &str, value: &str) -> bool {
        let Some((line, begin, end)) = self.find(key) else {
            return false;
        };
        let old = &self.0[line];
        let new = format!("{}{value}{}", &old[..begin], &old[end..]);
        let other = new != *old;
        self.0.insert(line + 1, new);
        other
    }

    /// Adds a record after another one.
    pub(crate) fn add(&mut self, behind: &str, key: &str, value: &str) -> bool {
        let Some((line, _, end)) = self.find(behind) else {
            return false;
        };
        let rest = &self.0[line][end..];
        let record = format!(":::MLLOG {{\"key\": \"{key}\", \"value\": {value}{rest}");
        self.0.insert(line + 1, record);
        true
    }

    /// Returns the keys whose values are not lists.
    pub(crate) fn keys(&self) -> Vec<String> {
        let key = |line: &String| {
            let rest = line.strip_prefix(":::MLLOG {\"key\": \"")?;
            let (key, rest) = rest.split_once('"')?;
            (!rest.starts_with(", \"value\": [")).then(|| key.to_owned())
        };
        self.0.iter().filter_map(key).collect()
    }

    /// The keys of latencies of samples and queries.
    pub(crate) fn latencies(&self) -> Vec<String> {
        let keys = self.keys().into_iter();
        keys.filter(|key| {
            let of_run = key.starts_with("result_") || key.starts_with("early_stopping_latency");
            of_run
                && (key.ends_with("latency_ns") || key.contains("early_stopping"))
                && !key.contains("token")
        })
        .collect()
    }
}

pub(crate) fn six_digits(number: f64) -> String {
    regatta_mllog::format::detail(number)
}

/// Returns the summary with all figures of its detail log, as a careful forger writes it.
pub(crate) fn follow(summary: &str, log: &Log) -> String {
    let scenario = log.word("effective_scenario").unwrap_or_default().to_owned();
    let lines = summary.split_inclusive('\n').map(|line| {
        let Some((label, rest)) = line.split_once(':') else {
            return line.to_owned();
        };
        let number = figure(label.trim(), &scenario).and_then(|key| log.number(&key));
        match number {
            Some(number) if rest.trim().parse::<f64>().is_ok() => {
                let value = match rest.contains('.') && !label.starts_with("Samples") {
                    true => format!("{number:.2}"),
                    false => six_digits_or_whole(number),
                };
                format!("{label}: {value}\n")
            }
            _ => line.to_owned(),
        }
    });
    lines.collect()
}

fn six_digits_or_whole(number: f64) -> String {
    match number.fract() == 0.0 {
        true => format!("{number:.0}"),
        false => six_digits(number),
    }
}

/// The detail log's key of a summary's figure.
fn figure(label: &str, scenario: &str) -> Option<String> {
    let query = if scenario == "MultiStream" {
        ["query_", "_per_query"]
    } else {
        ["", ""]
    };
    let key = match label {
        "Samples per second" => "result_samples_per_second".to_owned(),
        "Completed samples per second" => "result_completed_samples_per_sec".to_owned(),
        "Scheduled samples per second" => "result_scheduled_samples_per_sec".to_owned(),
        "QPS w/ loadgen overhead" => "result_qps_with_loadgen_overhead".to_owned(),
        "QPS w/o loadgen overhead" => "result_qps_without_loadgen_overhead".to_owned(),
        "Min latency (ns)" => format!("result_min_{}latency_ns", query[0]),
        "Max latency (ns)" => format!("result_max_{}latency_ns", query[0]),
        "Mean latency (ns)" => format!("result_mean_{}latency_ns", query[0]),
        _ => {
            let (share, rest) = label.split_once(" percentile latency (ns)")?;
            let share: f64 = share.trim_end_matches("th").parse().ok()?;
            assert!(rest.is_empty());
            format!("result_{share:.2}_percentile{}_latency_ns", query[1])
        }
    };
    Some(key)
}
