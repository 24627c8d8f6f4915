//! The fakes of CUDA's driver and of TensorRT, in the directory layout of the real libraries.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;

/// Two devices with a limited amount of memory.
const FAULTS: &str = "devices=2,memory=1073741824";

/// The directory of the fakes.
pub(crate) struct Fakes(PathBuf);

impl Fakes {
    /// Copies the fakes from the archive to the paths at which programs look for the libraries.
    pub(crate) fn install(work: &Path) -> anyhow::Result<Self> {
        let source =
            std::env::var_os("REGATTA_FAKES").context("--fakes needs the archive: start its `run`")?;
        let fakes = Self(work.join("fakes"));
        for (file, place) in [
            ("cuda_driver.so", fakes.cuda().join("libcuda.so.1")),
            ("version.so", fakes.libraries().join("libnvinfer.so.8")),
            ("trt_shim.so", fakes.shims().join("libregatta_trt-8.5.2.so")),
            ("trt_plugin.so", fakes.plugin()),
        ] {
            let file = Path::new(&source).join(file);
            if let Some(directory) = place.parent() {
                fs::create_dir_all(directory)?;
            }
            fs::copy(&file, &place).with_context(|| format!("{} cannot be copied", file.display()))?;
        }
        Ok(fakes)
    }

    fn cuda(&self) -> PathBuf {
        self.0.join("cuda")
    }

    pub(crate) fn libraries(&self) -> PathBuf {
        self.0.join("libraries")
    }

    pub(crate) fn shims(&self) -> PathBuf {
        self.0.join("shims")
    }

    pub(crate) fn plugin(&self) -> PathBuf {
        self.0.join("libfake_plugin.so")
    }

    /// Makes a program use the fakes. Faults of the fake driver that are set in the environment take precedence.
    pub(crate) fn apply(&self, command: &mut Command) {
        command.env("LD_LIBRARY_PATH", self.cuda());
        if std::env::var_os("FAKE_CUDA_FAULTS").is_none() {
            command.env("FAKE_CUDA_FAULTS", FAULTS);
        }
    }
}
