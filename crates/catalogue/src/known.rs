//! The built-in rounds, benchmarks and systems, from the files under `configs/` and `systems/`. They are embedded in the binaries, so that
//! both work without an installation directory. A file that the user names takes precedence; this module searches no directories. Rounds,
//! benchmarks and systems are embedded in packed form (`build.rs`), and unpacked at first use.

use std::sync::OnceLock;

use regatta_types::benchmark::Benchmark;

use crate::{
    packed::{Carried, Packed},
    round::{Round, RoundConf},
    system::System,
    system::SystemError,
};

/// The benchmark whose data and model come with Regatta. It is the first.
const BUNDLED: &str = "digits";
static BENCHMARKS: Packed = Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/benchmarks")));
/// Ordered by name, which is also the order by age.
static ROUNDS: Packed = Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/rounds")));
static SYSTEMS: Packed = Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/systems")));
static DESCRIPTIONS: Packed = Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/descriptions")));
/// The rounds that were already parsed, each at its file's index.
static READ: OnceLock<Vec<OnceLock<Round>>> = OnceLock::new();
/// The published MaxQ clocks, as TOML text.
pub const MAXQ: &str = include_str!("../../../configs/states/maxq.toml");

/// The error for a built-in configuration file that does not parse.
#[derive(Debug, thiserror::Error)]
#[error("the built-in file {file} cannot be parsed")]
pub struct KnownFileError {
    file: &'static str,
    #[source]
    source: toml::de::Error,
}

/// Returns the built-in benchmarks.
///
/// # Errors
/// When a built-in file does not parse, which the tests exclude.
pub fn benchmarks() -> Result<Vec<Benchmark>, KnownFileError> {
    let mut files: Vec<&'static Carried> = BENCHMARKS.files().iter().collect();
    files.sort_by_key(|file| file.name != BUNDLED);
    let parse = |file: &'static Carried| {
        Benchmark::from_toml(&file.text).map_err(|source| KnownFileError {
            file: &file.name,
            source,
        })
    };
    files.into_iter().map(parse).collect()
}

/// Returns the built-in rounds, oldest first.
///
/// # Errors
/// When a built-in file does not parse, which the tests exclude.
pub fn rounds() -> Result<Vec<Round>, KnownFileError> {
    ROUNDS.files().iter().map(read_round).collect()
}

/// Returns the built-in round called `name`, in any case, without parsing the others; `None` when there is none.
///
/// # Errors
/// When its built-in file does not parse, which the tests exclude.
pub fn round(name: &str) -> Result<Option<&'static Round>, KnownFileError> {
    let files = ROUNDS.files();
    let places = READ.get_or_init(|| files.iter().map(|_| OnceLock::new()).collect());
    let Some((file, place)) = files
        .iter()
        .zip(places)
        .find(|(file, _)| file.name.eq_ignore_ascii_case(name))
    else {
        return Ok(None);
    };
    if let Some(round) = place.get() {
        return Ok(Some(round));
    }
    let round = read_round(file)?;
    Ok(Some(place.get_or_init(|| round)))
}

fn read_round(file: &'static Carried) -> Result<Round, KnownFileError> {
    Round::from_toml(&file.text).map_err(|source| KnownFileError {
        file: &file.name,
        source,
    })
}

/// Returns the official `mlperf.conf` of the newest built-in round; `None` when no round is built in.
///
/// # Errors
/// When its built-in file does not parse, which the tests exclude.
pub fn newest_round_conf() -> Result<Option<RoundConf>, KnownFileError> {
    let newest = ROUNDS.files().last();
    let parse = |file: &'static Carried| {
        RoundConf::from_toml(&file.text).map_err(|source| KnownFileError {
            file: &file.name,
            source,
        })
    };
    newest.map(parse).transpose()
}

/// Returns the names of the built-in rounds, oldest first.
pub fn round_names() -> impl DoubleEndedIterator<Item = &'static str> {
    ROUNDS.files().iter().map(|file| file.name.as_str())
}

/// Returns names and file texts of the built-in systems.
pub fn system_texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    SYSTEMS
        .files()
        .iter()
        .map(|file| (file.name.as_str(), file.text.as_str()))
}

/// Returns names and JSON texts of the built-in templates of system descriptions (`systems/`).
pub fn description_texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    DESCRIPTIONS
        .files()
        .iter()
        .map(|file| (file.name.as_str(), file.text.as_str()))
}

/// Returns the built-in systems, parsed.
///
/// # Errors
/// When a built-in file does not parse, which the tests exclude.
pub fn systems() -> Result<Vec<System>, SystemError> {
    system_texts().map(|(_, text)| System::from_toml(text)).collect()
}
