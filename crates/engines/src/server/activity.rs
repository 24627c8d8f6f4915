//! What a server counts, read before and after a run: whether it was started again in between, and whether it served requests that were not the
//! run's own. The counters are a server's metrics in Prometheus' text form, or numbers in a JSON document.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    http::{Connection, HttpError},
    placeholders::unknown_placeholder,
};

/// Where a server counts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Activity {
    /// The path of the metrics, or of a JSON document.
    path: String,
    /// The counter of completed requests: a metric's name, whose values with all labels are added, or a JSON pointer.
    #[serde(default)]
    requests: Option<String>,
    /// The counter of generated tokens.
    #[serde(default)]
    tokens: Option<String>,
    /// A value that differs after the server was started again.
    #[serde(default)]
    pub(super) started: Option<String>,
}

/// A server's counters at one time. `None` for those that it does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Counters {
    requests: Option<f64>,
    tokens: Option<f64>,
    started: Option<f64>,
}

/// What a run has requested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct OwnCounts {
    pub(super) requests: u64,
    /// `None` if the server did not state them.
    pub(super) tokens: Option<u64>,
}

impl Activity {
    /// Returns what makes the table unusable.
    pub(super) fn fault(&self, is_of_network: bool) -> Option<String> {
        if !self.path.starts_with('/') {
            return Some("`activity.path` does not begin with /".to_owned());
        }
        if is_of_network && self.tokens.is_some() {
            return Some("`activity.tokens` is for servers that generate tokens".to_owned());
        }
        let known: &[&str] = if is_of_network { &["network"] } else { &[] };
        unknown_placeholder(&self.path, known)
    }

    /// Fills in the network's name on the server.
    pub(super) fn name_network(&mut self, network: &str) {
        self.path = self.path.replace("{network}", network);
    }

    /// Reads the counters.
    pub(super) fn read(&self, connection: &mut Connection) -> Result<Counters, HttpError> {
        let document = connection.get_document(&self.path)?;
        let json = serde_json::from_slice(&document).unwrap_or(Value::Null);
        let text = String::from_utf8_lossy(&document);
        let value = |name: &Option<String>| match name.as_deref()? {
            pointer if pointer.starts_with('/') => json.pointer(pointer)?.as_f64(),
            metric => sum(&text, metric),
        };
        Ok(Counters {
            requests: value(&self.requests),
            tokens: value(&self.tokens),
            started: value(&self.started),
        })
    }

    /// Returns a sentence about the counters that the driver names and the server does not have.
    pub(super) fn missing(&self, counters: &Counters) -> Option<String> {
        let named = [
            (&self.requests, counters.requests),
            (&self.tokens, counters.tokens),
            (&self.started, counters.started),
        ];
        let missing: Vec<&str> = named
            .iter()
            .filter(|(_, value)| value.is_none())
            .filter_map(|(name, _)| name.as_deref())
            .collect();
        (!missing.is_empty()).then(|| {
            format!(
                "the server has no {} at {}: whether it served another client or was started again is not known",
                missing.join(", "),
                self.path
            )
        })
    }
}

impl Counters {
    /// Returns whether the server was started again between this and a later reading: a start time differs, or a counter fell.
    pub(super) fn is_restarted(&self, later: &Self) -> bool {
        let fell = |before: Option<f64>, after: Option<f64>| match (before, after) {
            (Some(before), after) => after.is_none_or(|after| after < before),
            (None, _) => false,
        };
        self.started != later.started
            || fell(self.requests, later.requests)
            || fell(self.tokens, later.tokens)
    }

    /// Returns a sentence for each counter that has grown by another number than that of the run's own requests.
    pub(super) fn differences(&self, later: &Self, own: OwnCounts) -> Vec<String> {
        let of = |before: Option<f64>, after: Option<f64>, own: Option<u64>, what: &str| {
            // Metrics with labels appear with the first request.
            let counted = after? - before.unwrap_or(0.0);
            let own = own?;
            ((counted - own as f64).abs() >= 0.5).then(|| {
                format!(
                    "the server counted {counted} {what} during the run, but the run made {own}: another client may have been served"
                )
            })
        };
        [
            of(self.requests, later.requests, Some(own.requests), "requests"),
            of(self.tokens, later.tokens, own.tokens, "generated tokens"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Returns the sum of a metric's values with all labels.
fn sum(text: &str, metric: &str) -> Option<f64> {
    let values = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(metric)?;
        // Labels are in braces, and their values may contain spaces. A time may follow the value.
        let value = match rest.strip_prefix('{') {
            Some(labels) => labels.rsplit_once('}')?.1,
            None => rest.strip_prefix([' ', '\t'])?,
        };
        let value = value.split_whitespace().next()?.parse::<f64>().ok()?;
        value.is_finite().then_some(value)
    });
    values.reduce(|sum, value| sum + value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = "# HELP served_total Requests.\n# TYPE served_total counter\nserved_total{end=\"a b\"} 3\n\
        served_total{end=\"}\"} 4.0 1700000000\nserved_totally 9\nstart 1.7e9\n";

    #[test]
    fn a_metric_is_the_sum_over_its_labels() {
        assert_eq!(sum(METRICS, "served_total"), Some(7.0));
        assert_eq!(sum(METRICS, "start"), Some(1.7e9));
        assert_eq!(sum(METRICS, "served"), None);
        assert_eq!(sum("served_total{", "served_total"), None);
        assert_eq!(sum("served_total", "served_total"), None);
    }

    #[test]
    fn restarts_and_requests_of_others_are_seen() {
        let counters = |requests, tokens, started| Counters {
            requests: Some(requests),
            tokens,
            started: Some(started),
        };
        let before = counters(2.0, Some(10.0), 7.0);
        let own = OwnCounts {
            requests: 3,
            tokens: Some(30),
        };
        let after = counters(5.0, Some(40.0), 7.0);
        assert!(!before.is_restarted(&after));
        assert!(before.differences(&after, own).is_empty());
        assert!(before.is_restarted(&counters(5.0, Some(40.0), 8.0)));
        assert!(before.is_restarted(&counters(1.0, Some(40.0), 7.0)));
        assert!(before.is_restarted(&counters(5.0, None, 7.0)));
        let others = before.differences(&counters(6.0, Some(41.0), 7.0), own);
        assert_eq!(others.len(), 2, "{others:?}");
        assert!(
            others[0].starts_with("the server counted 4 requests"),
            "{others:?}"
        );
        let uncounted = OwnCounts { tokens: None, ..own };
        assert!(
            before
                .differences(&counters(5.0, Some(41.0), 7.0), uncounted)
                .is_empty()
        );
        // What a server does not count cannot differ.
        assert!(before.differences(&Counters::default(), own).is_empty());
        // A metric with labels appears with the first request.
        let first = Counters::default().differences(&counters(3.0, Some(31.0), 7.0), own);
        assert_eq!(first.len(), 1, "{first:?}");
        assert!(
            first[0].starts_with("the server counted 31 generated tokens"),
            "{first:?}"
        );
    }
}
