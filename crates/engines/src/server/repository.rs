//! The model repository of a server of networks, as Triton reads it: one network with its files as links, and `config.pbtxt` from the run's settings.
//! The server completes inputs and outputs from the network.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use regatta_fsutil::hash::sha256_of_file;
use regatta_types::engine_settings::EngineSettings;
use serde::Deserialize;

use super::placeholders::unknown_placeholder;

/// The configuration, in the repository and as a copy in the run's files.
const CONFIG: &str = "config.pbtxt";
/// The repository, in the run's files. They are delivered without names that begin with a dot.
const DIRECTORY: &str = ".model-repository";
/// The placeholders of the paths of a network's files.
const IN_FILES: &[&str] = &["model"];
const MODEL: &str = "{model}";

/// How a server computes networks: with KServe's inference protocol, and a model repository of Triton's form.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kserve {
    /// The backend in `config.pbtxt`.
    backend: String,
    /// The network's files by their names in the repository: paths on the device, with `{model}` for that of the model.
    files: BTreeMap<String, String>,
    /// The network's name on the server.
    #[serde(default = "default_network")]
    pub(super) network: String,
    /// Whether tensors are exchanged in shared memory. The server must see this machine's `/dev/shm`.
    #[serde(default)]
    pub(super) shared_memory: bool,
}

fn default_network() -> String {
    "network".to_owned()
}

/// Returns whether a text is a name in a directory, and not a path.
fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && !name.starts_with('.')
}

impl Kserve {
    /// Returns what makes the table unusable.
    pub(super) fn fault(&self) -> Option<String> {
        if self.files.is_empty() {
            return Some("`kserve.files` is empty".to_owned());
        }
        if let Some(name) = self.files.keys().find(|name| !is_file_name(name)) {
            return Some(format!(
                "`kserve.files` has {name:?}, which is not the name of a file"
            ));
        }
        let is_in_url = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !is_file_name(&self.network) || !self.network.bytes().all(is_in_url) {
            return Some(format!(
                "`kserve.network` is {:?}, but a network's name has letters, digits and -_.",
                self.network
            ));
        }
        let mut paths = self.files.values();
        let unknown = paths.find_map(|path| unknown_placeholder(path, IN_FILES));
        let mut paths = self.files.values();
        unknown.or_else(|| {
            let relative = paths.find(|path| !path.starts_with('/') && !path.starts_with(MODEL))?;
            Some(format!(
                "`kserve.files` has the path {relative:?}, which is neither absolute nor {MODEL}"
            ))
        })
    }

    /// Returns the files besides the model by their names, with the SHA-256 of those that are not directories, hexadecimal.
    pub(super) fn further_files(&self) -> BTreeMap<String, Option<String>> {
        let further = self.files.iter().filter(|(_, path)| !path.starts_with(MODEL));
        further
            .map(|(name, path)| {
                let hash = sha256_of_file(Path::new(path)).ok();
                (name.clone(), hash.map(|hash| hash.hex()))
            })
            .collect()
    }

    /// Returns the configuration of the network for batches of up to `batch` samples.
    fn config(&self, batch: usize, settings: &EngineSettings) -> String {
        let batch = batch.max(settings.preferred_batch_size.unwrap_or(1));
        let mut text = format!(
            "name: {:?}\nbackend: {:?}\nmax_batch_size: {batch}\n",
            self.network, self.backend
        );
        if let Some(count) = settings.instance_group_count {
            text += &format!("instance_group [ {{ count: {count} }} ]\n");
        }
        let sizes = settings
            .preferred_batch_size
            .map(|size| format!("preferred_batch_size: [ {size} ] "));
        if sizes.is_some() || settings.max_queue_delay_usec.is_some() {
            text += &format!(
                "dynamic_batching {{ {}max_queue_delay_microseconds: {} }}\n",
                sizes.unwrap_or_default(),
                settings.max_queue_delay_usec.unwrap_or(0)
            );
        }
        text
    }
}

/// The error for a repository that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the model repository {} cannot be written", path.display())]
pub(super) struct RepositoryError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// A model repository on the disk. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct ModelRepository(PathBuf);

impl ModelRepository {
    /// Writes the repository of a network into the directory of the run's files. One that a killed run has left there is removed.
    pub(super) fn write(
        kserve: &Kserve,
        model: &Path,
        batch: usize,
        settings: &EngineSettings,
        files: &Path,
    ) -> Result<Self, RepositoryError> {
        let path = files.join(DIRECTORY);
        Self::written(kserve, model, kserve.config(batch, settings), &path, files)
            .map_err(|source| RepositoryError { path, source })
    }

    fn written(kserve: &Kserve, model: &Path, config: String, path: &Path, files: &Path) -> io::Result<Self> {
        let root = std::path::absolute(path)?;
        match fs::remove_dir_all(&root) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let repository = Self(root.clone());
        let version = root.join(&kserve.network).join("1");
        fs::create_dir_all(&version)?;
        let model = std::path::absolute(model)?;
        for (name, path) in &kserve.files {
            symlink(path.replace(MODEL, &model.to_string_lossy()), version.join(name))?;
        }
        fs::write(root.join(&kserve.network).join(CONFIG), &config)?;
        fs::write(files.join(CONFIG), config)?;
        Ok(repository)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ModelRepository {
    fn drop(&mut self) {
        // What cannot be removed is removed with the run.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use regatta_types::engine_settings::EngineSettings;

    use super::*;

    fn kserve() -> Kserve {
        Kserve {
            backend: "onnxruntime".to_owned(),
            files: BTreeMap::from([
                ("model.onnx".to_owned(), "{model}".to_owned()),
                ("labels.txt".to_owned(), "/data/labels.txt".to_owned()),
            ]),
            network: default_network(),
            shared_memory: false,
        }
    }

    #[test]
    fn the_configuration_follows_the_settings() {
        let plain = kserve().config(4, &EngineSettings::default());
        assert_eq!(
            plain,
            "name: \"network\"\nbackend: \"onnxruntime\"\nmax_batch_size: 4\n"
        );
        let settings = EngineSettings {
            instance_group_count: Some(2),
            preferred_batch_size: Some(8),
            max_queue_delay_usec: Some(100),
            ..EngineSettings::default()
        };
        assert_eq!(
            kserve().config(4, &settings),
            "name: \"network\"\nbackend: \"onnxruntime\"\nmax_batch_size: 8\ninstance_group [ { count: 2 } ]\n\
             dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 100 }\n"
        );
    }

    #[test]
    fn a_repository_links_to_the_model_and_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("weights"), "weights").unwrap();
        let write = || {
            let model = dir.path().join("weights");
            ModelRepository::write(&kserve(), &model, 1, &EngineSettings::default(), dir.path()).unwrap()
        };
        let repository = write();
        let network = repository.path().join("network");
        assert_eq!(
            fs::read_to_string(network.join("1/model.onnx")).unwrap(),
            "weights"
        );
        assert!(
            fs::read_link(network.join("1/labels.txt"))
                .unwrap()
                .starts_with("/data")
        );
        let config = fs::read_to_string(network.join("config.pbtxt")).unwrap();
        assert_eq!(
            fs::read_to_string(dir.path().join("config.pbtxt")).unwrap(),
            config
        );
        // As a killed process does.
        std::mem::forget(repository);
        drop(write());
        assert!(!network.exists());
        let further = kserve().further_files();
        assert_eq!(further, BTreeMap::from([("labels.txt".to_owned(), None)]));
    }
}
