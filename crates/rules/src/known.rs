//! The rounds, benchmarks and systems that come with Regatta: the files under `configs/`, carried in the binaries so that both
//! work without an installation directory. A file that the user names wins over these; nothing here is searched for.

use std::sync::OnceLock;

use crate::{
    benchmark::Benchmark,
    round::Round,
    system::{System, SystemError},
};

const BENCHMARKS: &[(&str, &str)] = &[(
    "digits.toml",
    include_str!("../../../configs/benchmarks/digits.toml"),
)];
const ROUNDS: &[(&str, &str)] = &[
    ("v2.1.toml", include_str!("../../../configs/rounds/v2.1.toml")),
    ("v3.0.toml", include_str!("../../../configs/rounds/v3.0.toml")),
    ("v3.1.toml", include_str!("../../../configs/rounds/v3.1.toml")),
    ("v4.0.toml", include_str!("../../../configs/rounds/v4.0.toml")),
    ("v4.1.toml", include_str!("../../../configs/rounds/v4.1.toml")),
    ("v5.0.toml", include_str!("../../../configs/rounds/v5.0.toml")),
    ("v5.1.toml", include_str!("../../../configs/rounds/v5.1.toml")),
    ("v6.0.toml", include_str!("../../../configs/rounds/v6.0.toml")),
    ("v6.1.toml", include_str!("../../../configs/rounds/v6.1.toml")),
];

/// The rounds that were read already.
static READ: [OnceLock<Round>; ROUNDS.len()] = [const { OnceLock::new() }; ROUNDS.len()];

/// The files of `configs/systems` by name, without their ending.
macro_rules! systems {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../configs/systems/", $name, ".toml")))),*]
    };
}

const SYSTEMS: &[(&str, &str)] = systems![
    "agx-orin-32gb",
    "agx-orin-64gb",
    "agx-orin-devkit-32gb",
    "agx-xavier",
    "orin-nano-4gb",
    "orin-nano-8gb",
    "orin-nx-16gb",
    "orin-nx-8gb",
    "xavier-nx",
];
/// The published MaxQ clocks, as TOML text.
pub const MAXQ: &str = include_str!("../../../configs/states/maxq.toml");

/// A configuration file that came with the program and does not read.
#[derive(Debug, thiserror::Error)]
#[error("the built-in file {file} does not read")]
pub struct KnownFileError {
    file: &'static str,
    #[source]
    source: toml::de::Error,
}

/// The benchmarks that come with Regatta.
///
/// # Errors
/// When a built-in file does not read, which the tests exclude.
pub fn benchmarks() -> Result<Vec<Benchmark>, KnownFileError> {
    BENCHMARKS
        .iter()
        .map(|&(file, text)| Benchmark::from_toml(text).map_err(|source| KnownFileError { file, source }))
        .collect()
}

/// The rounds that come with Regatta, oldest first.
///
/// # Errors
/// When a built-in file does not read, which the tests exclude.
pub fn rounds() -> Result<Vec<Round>, KnownFileError> {
    ROUNDS
        .iter()
        .map(|&(file, text)| Round::from_toml(text).map_err(|source| KnownFileError { file, source }))
        .collect()
}

/// The round called `name` that comes with Regatta, without reading the others; `None` when there is none.
///
/// # Errors
/// When its built-in file does not read, which the tests exclude.
pub fn round(name: &str) -> Result<Option<&'static Round>, KnownFileError> {
    let mut known = ROUNDS.iter().zip(&READ);
    let Some((&(file, text), read)) = known.find(|((file, _), _)| stem(file) == name) else {
        return Ok(None);
    };
    if let Some(round) = read.get() {
        return Ok(Some(round));
    }
    let round = Round::from_toml(text).map_err(|source| KnownFileError { file, source })?;
    Ok(Some(read.get_or_init(|| round)))
}

/// The names of the rounds that come with Regatta, oldest first.
pub fn round_names() -> impl DoubleEndedIterator<Item = &'static str> {
    ROUNDS.iter().map(|(file, _)| stem(file))
}

fn stem(file: &'static str) -> &'static str {
    file.strip_suffix(".toml").unwrap_or(file)
}

/// The systems that come with Regatta: names and the texts of their files.
#[must_use]
pub const fn system_texts() -> &'static [(&'static str, &'static str)] {
    SYSTEMS
}

/// The systems that come with Regatta, read.
///
/// # Errors
/// When a built-in file does not read, which the tests exclude.
pub fn systems() -> Result<Vec<System>, SystemError> {
    SYSTEMS.iter().map(|&(_, text)| System::from_toml(text)).collect()
}
