//! The systems files of a program, and the selection of one for a run. The user's choice comes first, then the file of the device's
//! module, then, for TensorRT, the generic rule. `bench` on a device and the coordinator both use it.

use std::{error::Error, path::Path};

use regatta_types::documents::{DeviceFacts, EngineKind};
use sha2::{Digest as _, Sha256};

use super::config_file::{CatalogueError, ConfigFileKind, read_directory, read_file};
use crate::{
    known,
    system::{BoardFacts, System, SystemError, SystemRequest, SystemValues, generic},
};

/// All systems files of a program: the user's own first, then the built-in ones. The first match applies.
#[derive(Debug)]
pub struct SystemCatalogue(Vec<SystemFile>);

#[derive(Debug)]
struct SystemFile {
    /// The path of a file, or the name of a built-in one.
    name: String,
    /// SHA-256 of the text, hexadecimal.
    sha256: String,
    system: System,
}

impl SystemFile {
    fn parse(name: &str, text: &str) -> Result<Self, SystemError> {
        let hash = Sha256::digest(text.as_bytes());
        Ok(Self {
            name: name.to_owned(),
            sha256: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
            system: System::from_toml(text)?,
        })
    }

    fn read(path: &Path) -> Result<Self, CatalogueError> {
        let name = path.display().to_string();
        read_file(ConfigFileKind::System, path, |text| {
            Self::parse(&name, text).map_err(|error| match error {
                // The catalogue's own error says that the file is not a system's.
                SystemError::Toml(error) => Box::<dyn Error + Send + Sync>::from(error),
                error => error.into(),
            })
        })
    }

    fn choose(&self, request: &SystemRequest<'_>) -> Option<SystemValues> {
        self.system.choose(request, &self.name, Some(&self.sha256))
    }
}

impl SystemCatalogue {
    /// Reads the built-in systems and those of the user's own `configs` directory.
    ///
    /// # Errors
    /// [`CatalogueError`] when a file cannot be read or parsed.
    pub fn read(configs: Option<&Path>) -> Result<Self, CatalogueError> {
        let mut files = match configs {
            Some(configs) => read_directory(
                &configs.join(ConfigFileKind::System.directory()),
                SystemFile::read,
            )?,
            None => Vec::new(),
        };
        for (name, text) in known::system_texts() {
            let name = format!("configs/systems/{name}.toml");
            files.push(
                SystemFile::parse(&name, text).map_err(|source| CatalogueError::File {
                    kind: ConfigFileKind::System,
                    path: name.into(),
                    source: source.into(),
                })?,
            );
        }
        Ok(Self(files))
    }

    /// Returns every system with its file. Of systems with the same name, the first counts.
    pub fn all(&self) -> impl Iterator<Item = (&str, &System)> {
        let is_first = |number: usize, file: &SystemFile| {
            self.0
                .iter()
                .take(number)
                .all(|earlier| earlier.system.name != file.system.name)
        };
        let files = self.0.iter().enumerate();
        let files = files.filter(move |(number, file)| is_first(*number, file));
        files.map(|(_, file)| (file.name.as_str(), &file.system))
    }

    /// Returns the values of the system that the user names. `name` is a system's name, or the path of a file that ends in `.toml`.
    /// `words` are further names that the caller accepts, for the error text.
    ///
    /// # Errors
    /// [`CatalogueError`] when the system does not exist, does not parse, or has no values for the run.
    pub fn named(
        &self,
        name: &str,
        words: &str,
        request: &SystemRequest<'_>,
    ) -> Result<SystemValues, CatalogueError> {
        let is_path = name.ends_with(".toml");
        let read = is_path.then(|| SystemFile::read(Path::new(name))).transpose()?;
        let found = read
            .as_ref()
            .or_else(|| self.0.iter().find(|file| !is_path && file.system.name == name));
        let Some(file) = found else {
            let names = self.0.iter().map(|file| file.system.name.as_str());
            let known: Vec<&str> = names.chain([words]).collect();
            return Err(CatalogueError::Unknown {
                kind: ConfigFileKind::System,
                name: name.to_owned(),
                known: format!("{}, or the path of a file that ends in .toml", known.join(", ")),
            });
        };
        file.choose(request).ok_or_else(|| CatalogueError::NothingForRun {
            file: file.name.clone(),
            benchmark: request.benchmark.name.clone(),
            scenario: request.scenario,
            engine: request.engine,
        })
    }

    /// Returns the values for a device: from its module's file, or for TensorRT from the generic rule. `facts` is called only for the
    /// generic rule, because on a device it starts CUDA.
    pub fn of_device(
        &self,
        module: Option<&str>,
        facts: impl FnOnce() -> DeviceFacts,
        request: &SystemRequest<'_>,
    ) -> Option<SystemValues> {
        let of_module = module.and_then(|module| {
            let mut files = self.0.iter().filter(|file| file.system.is_for(module));
            files.find_map(|file| file.choose(request))
        });
        of_module.or_else(|| {
            (request.engine == EngineKind::Tensorrt).then_some(())?;
            let facts = BoardFacts::from(&facts());
            generic(&facts, request.benchmark, request.scenario).choose(request, "generic", None)
        })
    }
}
