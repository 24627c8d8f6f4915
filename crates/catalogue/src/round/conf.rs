//! A round's official `mlperf.conf`, without the rest of the round: all that a device needs of it. Reading only this keeps
//! the rules of submissions out of the agent's binary.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::Deserialize;

/// The values of a round's official `mlperf.conf`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RoundConf {
    /// The round's name, for example `v6.1`.
    pub name: String,
    /// `model.scenario.key` to value. Values are texts because seeds exceed 63 bits.
    pub mlperf_conf: BTreeMap<String, String>,
}

impl RoundConf {
    /// Reads the values from a round's file, whose other entries [`Round::from_toml`](super::Round::from_toml) checks.
    ///
    /// # Errors
    /// The parser's own message, with line and column.
    pub fn from_toml(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Renders the conf for Regatta's own LoadGen, followed by a benchmark's extra lines.
    ///
    /// The official LoadGen uses its own conf instead, because a submission requires it unmodified.
    #[must_use]
    pub fn render(&self, extra: &BTreeMap<String, String>) -> String {
        render(&self.name, &self.mlperf_conf, extra)
    }
}

/// Renders the conf of the round `name`, followed by a benchmark's extra lines.
pub(super) fn render(
    name: &str,
    values: &BTreeMap<String, String>,
    extra: &BTreeMap<String, String>,
) -> String {
    let mut text = format!("# MLPerf Inference {name}: values of the official mlperf.conf\n");
    render_conf_lines(&mut text, values);
    if !extra.is_empty() {
        text.push_str("# Values of the benchmark's own file\n");
        render_conf_lines(&mut text, extra);
    }
    text
}

/// Appends `key = value` lines in LoadGen's conf syntax, sorted by key.
pub fn render_conf_lines(text: &mut String, values: &BTreeMap<String, String>) {
    for (key, value) in values {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{key} = {value}");
    }
}
