//! The model repository of a server of networks, as Triton reads it: one network with its files as links, and `config.pbtxt` from the run's settings.
//! The server completes inputs and outputs from the network.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use regatta_types::engine_settings::EngineSettings;
use serde::Deserialize;

use super::placeholders::unknown_placeholder;

/// The network's name on the server.
pub(super) const NETWORK: &str = "network";
/// The configuration, in the repository and as a copy in the run's files.
const CONFIG: &str = "config.pbtxt";
/// The repository, in the run's files. They are delivered without names that begin with a dot.
const DIRECTORY: &str = ".model-repository";
/// The placeholders of the paths of a network's files.
const IN_FILES: &[&str] = &["model"];

/// How a server computes networks: with KServe's inference protocol, and a model repository of Triton's form.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kserve {
    /// The backend in `config.pbtxt`.
    backend: String,
    /// The network's files by their names in the repository: paths on the device, with `{model}` for that of the model.
    files: BTreeMap<String, String>,
    /// Whether tensors are exchanged in shared memory. The server must see this machine's `/dev/shm`.
    #[serde(default)]
    pub(super) shared_memory: bool,
}

impl Kserve {
    /// Returns what makes the table unusable.
    pub(super) fn fault(&self) -> Option<String> {
        if self.files.is_empty() {
            return Some("`kserve.files` is empty".to_owned());
        }
        if let Some(name) = self
            .files
            .keys()
            .find(|name| name.contains('/') || name.starts_with('.'))
        {
            return Some(format!(
                "`kserve.files` has {name}, which is not the name of a file"
            ));
        }
        self.files
            .values()
            .find_map(|path| unknown_placeholder(path, IN_FILES))
    }

    /// Returns the configuration of the network for batches of up to `batch` samples.
    fn config(&self, batch: usize, settings: &EngineSettings) -> String {
        let batch = batch.max(settings.preferred_batch_size.unwrap_or(1));
        let mut text = format!(
            "name: {NETWORK:?}\nbackend: {:?}\nmax_batch_size: {batch}\n",
            self.backend
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

/// A model repository on the disk. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct ModelRepository(PathBuf);

impl ModelRepository {
    /// Writes the repository of a network into the directory of the run's files.
    pub(super) fn write(
        kserve: &Kserve,
        model: &Path,
        batch: usize,
        settings: &EngineSettings,
        files: &Path,
    ) -> io::Result<Self> {
        let root = std::path::absolute(files.join(DIRECTORY))?;
        let repository = Self(root.clone());
        let version = root.join(NETWORK).join("1");
        fs::create_dir_all(&version)?;
        let model = std::path::absolute(model)?;
        for (name, path) in &kserve.files {
            symlink(
                path.replace("{model}", &model.to_string_lossy()),
                version.join(name),
            )?;
        }
        let config = kserve.config(batch, settings);
        fs::write(root.join(NETWORK).join(CONFIG), &config)?;
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
        drop(repository);
        assert!(!network.exists());
        drop(write());
    }
}
