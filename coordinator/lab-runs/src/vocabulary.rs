//! Options whose values are words of a fixed list. `--help` and completions list the words, and any case of a word is accepted where its option
//! ignores the case.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use regatta_types::{EngineKind, Mode, Scenario, UnknownWord, documents::Delivery};

use regatta_lab_store::StatePreset;

/// Returns the parser of a scenario.
pub fn scenario() -> impl TypedValueParser<Value = Scenario> {
    words(Scenario::ALL.map(Scenario::as_str), str::parse)
}

/// Returns the parser of a mode. The short names of the reference harnesses are accepted and not listed.
pub fn mode() -> impl TypedValueParser<Value = Mode> {
    let value = |mode: Mode| {
        let value = PossibleValue::new(mode.as_str());
        match mode {
            Mode::AccuracyOnly => value.alias("accuracy"),
            Mode::PerformanceOnly => value.alias("performance"),
            Mode::SubmissionRun | Mode::FindPeakPerformance => value,
        }
    };
    words(Mode::ALL.map(value), str::parse)
}

/// Returns the parser of an engine.
pub fn engine() -> impl TypedValueParser<Value = EngineKind> {
    words(EngineKind::ALL.map(EngineKind::as_str), str::parse)
}

/// Returns the parser of a device state.
pub fn state() -> impl TypedValueParser<Value = StatePreset> {
    words(StatePreset::ALL.iter().map(|preset| preset.as_str()), str::parse)
}

/// Returns the parser of the time of the logs' delivery.
pub fn delivery() -> impl TypedValueParser<Value = Delivery> {
    PossibleValuesParser::new(["after", "live"]).map(|word| match word.as_str() {
        "live" => Delivery::Live,
        _ => Delivery::After,
    })
}

fn words<T>(
    known: impl IntoIterator<Item = impl Into<PossibleValue>>,
    parse: fn(&str) -> Result<T, UnknownWord>,
) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(known.into_iter().map(Into::into).collect::<Vec<PossibleValue>>())
        .try_map(move |word| parse(&word))
}
