//! The systems files of a program, and the selection of one for a run. The user's choice comes first, then the file of the device's
//! module, then, for TensorRT, the generic rule. `bench` on a device and the coordinator both use it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regatta_types::{
    Scenario,
    documents::{DeviceFacts, EngineKind},
};
use sha2::{Digest as _, Sha256};

use super::{BoardFacts, Chosen, System, SystemError, Wanted, generic};
use crate::known;

/// The error for a system that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SystemChoiceError {
    /// No system has this name.
    #[error("unknown system `{given}`; known are {known}, or the path of a file that ends in .toml")]
    Unknown {
        /// The requested name.
        given: String,
        /// The known names, comma separated.
        known: String,
    },
    /// The named system has no values for a run.
    #[error("{file} has nothing for {benchmark} {scenario} on {engine}")]
    NothingForRun {
        /// The file.
        file: String,
        /// The benchmark.
        benchmark: String,
        /// The scenario.
        scenario: Scenario,
        /// The engine.
        engine: EngineKind,
    },
    /// A file cannot be read.
    #[error("cannot read {0}")]
    Io(String, #[source] io::Error),
    /// The file is not a valid system's file.
    #[error("{0}")]
    File(String, #[source] Box<SystemError>),
}

/// All systems files of a program: the user's own first, then the built-in ones. The first match applies.
#[derive(Debug)]
pub struct SystemCatalogue(Vec<SystemFile>);

/// One systems file.
#[derive(Debug)]
struct SystemFile {
    /// The path of a file, or the name of a built-in one.
    name: String,
    /// SHA-256 of the text, hexadecimal.
    sha256: String,
    system: System,
}

impl SystemFile {
    fn parse(name: &str, text: &str) -> Result<Self, SystemChoiceError> {
        let system = System::from_toml(text);
        let hash = Sha256::digest(text.as_bytes());
        Ok(Self {
            name: name.to_owned(),
            sha256: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
            system: system.map_err(|source| SystemChoiceError::File(name.to_owned(), Box::new(source)))?,
        })
    }

    fn read(path: &Path) -> Result<Self, SystemChoiceError> {
        let name = path.display().to_string();
        match regular_file::read_text(path) {
            Ok(text) => Self::parse(&name, &text),
            Err(source) => Err(SystemChoiceError::Io(name, source)),
        }
    }

    fn choose(&self, wanted: &Wanted<'_>) -> Option<Chosen> {
        self.system.choose(wanted, &self.name, Some(&self.sha256))
    }
}

impl SystemCatalogue {
    /// Reads the files of the user's own directory, if it exists, and the built-in ones.
    ///
    /// # Errors
    /// [`SystemChoiceError`] with the file that cannot be read.
    pub fn read(own: Option<&Path>) -> Result<Self, SystemChoiceError> {
        let mut files = Vec::new();
        for path in own.map(toml_files).transpose()?.unwrap_or_default() {
            files.push(SystemFile::read(&path)?);
        }
        for (name, text) in known::system_texts() {
            files.push(SystemFile::parse(&format!("configs/systems/{name}.toml"), text)?);
        }
        Ok(Self(files))
    }

    /// Returns the values of the system that the user names. `given` is a system's name, or the path of a file that ends in `.toml`.
    /// `words` are further names that the caller accepts, for the error text.
    ///
    /// # Errors
    /// [`SystemChoiceError`] when the system does not exist, does not parse, or has no values for the run.
    pub fn named(&self, given: &str, words: &str, wanted: &Wanted<'_>) -> Result<Chosen, SystemChoiceError> {
        let is_path = given.ends_with(".toml");
        let read = is_path.then(|| SystemFile::read(Path::new(given))).transpose()?;
        let found = read
            .as_ref()
            .or_else(|| self.0.iter().find(|file| !is_path && file.system.name == given));
        let Some(file) = found else {
            let names = self.0.iter().map(|file| file.system.name.as_str());
            let known: Vec<&str> = names.chain([words]).collect();
            return Err(SystemChoiceError::Unknown {
                given: given.to_owned(),
                known: known.join(", "),
            });
        };
        file.choose(wanted)
            .ok_or_else(|| SystemChoiceError::NothingForRun {
                file: file.name.clone(),
                benchmark: wanted.benchmark.name.clone(),
                scenario: wanted.scenario,
                engine: wanted.engine,
            })
    }

    /// Returns the values for a device: from its module's file, or for TensorRT from the generic rule. `facts` is called only for the
    /// generic rule, because on a device it starts CUDA.
    pub fn of_device(
        &self,
        module: Option<&str>,
        facts: impl FnOnce() -> DeviceFacts,
        wanted: &Wanted<'_>,
    ) -> Option<Chosen> {
        let of_module = module.and_then(|module| {
            let mut files = self.0.iter().filter(|file| file.system.is_for(module));
            files.find_map(|file| file.choose(wanted))
        });
        of_module.or_else(|| {
            (wanted.engine == EngineKind::Tensorrt).then_some(())?;
            let facts = BoardFacts::from(&facts());
            generic(&facts, wanted.benchmark, wanted.scenario).choose(wanted, "generic", None)
        })
    }
}

/// Returns the `.toml` files of a directory, sorted; none when the directory does not exist.
fn toml_files(directory: &Path) -> Result<Vec<PathBuf>, SystemChoiceError> {
    let listed: io::Result<Vec<PathBuf>> = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect()),
    };
    let mut paths =
        listed.map_err(|source| SystemChoiceError::Io(directory.display().to_string(), source))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    Ok(paths)
}
