//! Which system's file tells how a device runs a benchmark: the one that the user names, the one of the device's module, or,
//! for TensorRT, the generic rule. What is taken from it stands in the run's spec.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regatta_rules::{
    benchmark::Benchmark,
    documents::{DeviceFacts, EngineKind},
    known,
    system::{BoardFacts, Chosen, System, SystemError, Wanted, generic},
};

use crate::{
    hex::{hex, sha256},
    workspace::Workspace,
};

/// The word that asks for no system's values.
const NONE: &str = "none";

/// A system that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SystemsError {
    /// No such system.
    #[error(
        "unknown system `{given}`; known are {known}, `{NONE}`, or the path of a file that ends in .toml"
    )]
    Unknown {
        /// What was given.
        given: String,
        /// What there is.
        known: String,
    },
    /// The named system has nothing for a run.
    #[error("{file} has nothing for {benchmark} {scenario} on {engine}")]
    Nothing {
        /// The file.
        file: String,
        /// The benchmark.
        benchmark: String,
        /// The scenario.
        scenario: regatta_rules::Scenario,
        /// The engine.
        engine: EngineKind,
    },
    /// A file cannot be read.
    #[error("cannot read {0}")]
    Io(String, #[source] io::Error),
    /// A file describes no system.
    #[error("{0}")]
    File(String, #[source] Box<SystemError>),
}

/// A system's file.
#[derive(Debug)]
struct File {
    /// Its path in the workspace, or its name among the built-in ones.
    name: String,
    sha256: String,
    system: System,
}

impl File {
    fn parse(name: &str, text: &str) -> Result<Self, SystemsError> {
        let system = System::from_toml(text);
        Ok(Self {
            name: name.to_owned(),
            sha256: hex(&sha256(text.as_bytes())),
            system: system.map_err(|source| SystemsError::File(name.to_owned(), Box::new(source)))?,
        })
    }

    fn read(path: &Path) -> Result<Self, SystemsError> {
        let name = path.display().to_string();
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&name, &text),
            Err(source) => Err(SystemsError::Io(name, source)),
        }
    }

    fn choose(&self, wanted: &Wanted<'_>) -> Option<Chosen> {
        self.system.choose(wanted, &self.name, Some(&self.sha256))
    }
}

/// Every system's file: the workspace's own win over built-in ones.
#[derive(Debug)]
pub(crate) struct Systems(Vec<File>);

impl Systems {
    /// Reads the workspace's files and those that come with Regatta.
    ///
    /// # Errors
    /// [`SystemsError`] naming a file that does not read.
    pub(crate) fn read(workspace: Option<&Workspace>) -> Result<Self, SystemsError> {
        let mut files = Vec::new();
        if let Some(workspace) = workspace {
            for path in toml_files(&workspace.configs("systems"))? {
                files.push(File::read(&path)?);
            }
        }
        for (name, text) in known::system_texts() {
            files.push(File::parse(&format!("configs/systems/{name}.toml"), text)?);
        }
        Ok(Self(files))
    }

    /// What is known for a run on a device. `given` is what the user named, if anything.
    ///
    /// # Errors
    /// [`SystemsError`] when the user's system does not exist, does not read, or has nothing for the run.
    pub(crate) fn choose(
        &self,
        given: Option<&str>,
        facts: &DeviceFacts,
        wanted: &Wanted<'_>,
    ) -> Result<Option<Chosen>, SystemsError> {
        match given {
            Some(NONE) => Ok(None),
            Some(given) => self.named(given, wanted).map(Some),
            None => Ok(self.of_device(facts, wanted)),
        }
    }

    fn named(&self, given: &str, wanted: &Wanted<'_>) -> Result<Chosen, SystemsError> {
        let is_path = given.ends_with(".toml");
        let read = is_path.then(|| File::read(Path::new(given))).transpose()?;
        let found = read
            .as_ref()
            .or_else(|| self.0.iter().find(|file| !is_path && file.system.name == given));
        let Some(file) = found else {
            let known: Vec<&str> = self.0.iter().map(|file| file.system.name.as_str()).collect();
            return Err(SystemsError::Unknown {
                given: given.to_owned(),
                known: known.join(", "),
            });
        };
        file.choose(wanted).ok_or_else(|| SystemsError::Nothing {
            file: file.name.clone(),
            benchmark: wanted.benchmark.name.clone(),
            scenario: wanted.scenario,
            engine: wanted.engine,
        })
    }

    fn of_device(&self, facts: &DeviceFacts, wanted: &Wanted<'_>) -> Option<Chosen> {
        let module = facts.module.as_deref();
        let of_module = module.and_then(|module| {
            let files = self.0.iter().filter(|file| file.system.is_for(module));
            files.filter_map(|file| file.choose(wanted)).next()
        });
        of_module.or_else(|| {
            (wanted.engine == EngineKind::Tensorrt)
                .then(|| by_rule(facts, wanted.benchmark, wanted))
                .flatten()
        })
    }
}

fn toml_files(directory: &Path) -> Result<Vec<PathBuf>, SystemsError> {
    let listed = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect()),
    };
    let mut paths: Vec<_> =
        listed.map_err(|source| SystemsError::Io(directory.display().to_string(), source))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    Ok(paths)
}

/// By the generic rule, from what the device told in its hello.
fn by_rule(facts: &DeviceFacts, benchmark: &Benchmark, wanted: &Wanted<'_>) -> Option<Chosen> {
    generic(&BoardFacts::from(facts), benchmark, wanted.scenario).choose(wanted, "generic", None)
}

#[cfg(test)]
mod tests {
    use regatta_rules::{Scenario, system::PowerSetting};

    use super::*;

    const OWN: &str = "schema = 1\nname = 'boat'\ntitle = 'Boat'\n[board]\nmodules = ['p3701-0005']\n[[run]]\nbenchmark = 'digits'\n\
                       scenario = 'Offline'\nsource = { measured = 'today' }\n[run.settings]\ngpu_batch_size = 3\n";

    fn orin(module: &str) -> DeviceFacts {
        DeviceFacts {
            module: Some(module.to_owned()),
            dla_cores: 2,
            memory_bytes: 64 << 30,
            ..DeviceFacts::default()
        }
    }

    fn wanted(benchmark: &Benchmark, engine: EngineKind) -> Wanted<'_> {
        Wanted {
            benchmark,
            scenario: Scenario::Offline,
            power: PowerSetting::MaxP,
            engine,
        }
    }

    #[test]
    fn the_devices_module_finds_its_file_and_the_workspaces_own_wins() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(dir.path(), "schema = 1\n").unwrap();
        let mut benchmark = known::benchmarks().unwrap().remove(0);
        let batch = |systems: &Systems, given, facts: &DeviceFacts, benchmark: &Benchmark, engine| {
            let chosen = systems
                .choose(given, facts, &wanted(benchmark, engine))
                .unwrap()?;
            Some((
                chosen.settings["gpu_batch_size"].clone(),
                chosen.from.system,
                chosen.from.file,
            ))
        };
        let told = |batch: &str, system: &str, file: &str| {
            Some((batch.to_owned(), system.to_owned(), file.to_owned()))
        };
        let systems = Systems::read(Some(&workspace)).unwrap();
        let (tensorrt, facts) = (EngineKind::Tensorrt, orin("p3701-0005"));

        // Nobody has published digits.
        assert_eq!(
            batch(&systems, None, &facts, &benchmark, tensorrt).unwrap().1,
            "generic"
        );
        benchmark.aliases.push("resnet50".to_owned());
        let built_in = told("256", "agx-orin-64gb", "configs/systems/agx-orin-64gb.toml");
        assert_eq!(batch(&systems, None, &facts, &benchmark, tensorrt), built_in);
        assert_eq!(
            batch(&systems, None, &orin("p9999-0000"), &benchmark, tensorrt)
                .unwrap()
                .1,
            "generic"
        );
        assert_eq!(batch(&systems, None, &facts, &benchmark, EngineKind::Tract), None);
        assert_eq!(batch(&systems, Some(NONE), &facts, &benchmark, tensorrt), None);
        assert_eq!(
            batch(&systems, Some("xavier-nx"), &facts, &benchmark, tensorrt)
                .unwrap()
                .0,
            "64"
        );

        let own = workspace.configs("systems");
        fs::create_dir_all(&own).unwrap();
        let path = own.join("boat.toml");
        fs::write(&path, OWN).unwrap();
        let systems = Systems::read(Some(&workspace)).unwrap();
        let file = path.display().to_string();
        assert_eq!(
            batch(&systems, None, &facts, &benchmark, tensorrt),
            told("3", "boat", &file)
        );
        assert_eq!(
            batch(&systems, Some(&file), &orin("other"), &benchmark, tensorrt),
            told("3", "boat", &file)
        );
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(dir.path(), "schema = 1\n").unwrap();
        let systems = Systems::read(Some(&workspace)).unwrap();
        let benchmark = known::benchmarks().unwrap().remove(0);
        let refused = |given: &str| {
            let wanted = wanted(&benchmark, EngineKind::Tensorrt);
            systems
                .choose(Some(given), &DeviceFacts::default(), &wanted)
                .unwrap_err()
                .to_string()
        };
        assert!(refused("agx-orin").contains("unknown system `agx-orin`; known are agx-orin-32gb, "));
        assert_eq!(
            refused("xavier-nx"),
            "configs/systems/xavier-nx.toml has nothing for digits Offline on tensorrt"
        );
        let missing = dir.path().join("missing.toml").display().to_string();
        assert_eq!(refused(&missing), format!("cannot read {missing}"));
        let own = workspace.configs("systems");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("broken.toml"), "schema = ").unwrap();
        let error = Systems::read(Some(&workspace)).unwrap_err();
        assert!(error.to_string().ends_with("broken.toml"), "{error}");
    }
}
