//! The rounds, benchmarks and systems that come with Regatta: the files under `configs/` and `systems/`, carried in the binaries so that both
//! work without an installation directory. A file that the user names wins over these; nothing here is searched for. Rounds and
//! systems are carried packed (`build.rs`), and unpacked when they are first asked for.

use std::{io::Read as _, sync::OnceLock};

use flate2::read::DeflateDecoder;
use regatta_types::benchmark::Benchmark;

use crate::{round::Round, system::System, system::SystemError};

const BENCHMARKS: &[(&str, &str)] = &[(
    "digits.toml",
    include_str!("../../../configs/benchmarks/digits.toml"),
)];
/// In the order of their names, which is the order of their age.
static ROUNDS: Packed = Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/rounds")));
static SYSTEMS: Packed = Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/systems")));
static DESCRIPTIONS: Packed = Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/descriptions")));
/// The rounds that were read already, each at its file's place.
static READ: OnceLock<Vec<OnceLock<Round>>> = OnceLock::new();
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

/// Files of one directory as `build.rs` packed them, by name: `NAME \0 TEXT \0` for each, deflated.
struct Packed {
    bytes: &'static [u8],
    files: OnceLock<Vec<Carried>>,
}

/// A file that is carried.
struct Carried {
    /// Its name without the ending.
    name: String,
    text: String,
}

impl Packed {
    const fn new(bytes: &'static [u8]) -> Self {
        Self {
            bytes,
            files: OnceLock::new(),
        }
    }

    fn files(&'static self) -> &'static [Carried] {
        self.files.get_or_init(|| {
            let mut all = String::new();
            #[expect(
                clippy::expect_used,
                reason = "the bytes were packed by build.rs in this very build"
            )]
            DeflateDecoder::new(self.bytes)
                .read_to_string(&mut all)
                .expect("what was packed unpacks");
            let mut parts = all.split_terminator('\0').map(str::to_owned);
            let mut files = Vec::new();
            while let (Some(name), Some(text)) = (parts.next(), parts.next()) {
                files.push(Carried { name, text });
            }
            files
        })
    }
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
    ROUNDS.files().iter().map(read_round).collect()
}

/// The round called `name`, in any case, that comes with Regatta, without reading the others; `None` when there is none.
///
/// # Errors
/// When its built-in file does not read, which the tests exclude.
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

/// The names of the rounds that come with Regatta, oldest first.
pub fn round_names() -> impl DoubleEndedIterator<Item = &'static str> {
    ROUNDS.files().iter().map(|file| file.name.as_str())
}

/// The systems that come with Regatta: names and the texts of their files.
pub fn system_texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    SYSTEMS
        .files()
        .iter()
        .map(|file| (file.name.as_str(), file.text.as_str()))
}

/// The templates of system descriptions that come with Regatta (`systems/`): names and the texts of their files, JSON.
pub fn description_texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    DESCRIPTIONS
        .files()
        .iter()
        .map(|file| (file.name.as_str(), file.text.as_str()))
}

/// The systems that come with Regatta, read.
///
/// # Errors
/// When a built-in file does not read, which the tests exclude.
pub fn systems() -> Result<Vec<System>, SystemError> {
    system_texts().map(|(_, text)| System::from_toml(text)).collect()
}
