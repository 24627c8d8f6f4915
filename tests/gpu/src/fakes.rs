//! The fakes of CUDA's driver and of TensorRT, laid out as a machine has the libraries.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;

/// Two devices, whose memory can be exhausted.
const FAULTS: &str = "devices=2,memory=1073741824";

/// The directories of the fakes.
pub(crate) struct Fakes(PathBuf);

impl Fakes {
    /// Copies the archive's fakes to the places where programs look for the libraries.
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

    /// Makes a program use the fakes, unless the environment has other faults of the fake driver.
    pub(crate) fn apply(&self, command: &mut Command) {
        command.env("LD_LIBRARY_PATH", self.cuda());
        if std::env::var_os("FAKE_CUDA_FAULTS").is_none() {
            command.env("FAKE_CUDA_FAULTS", FAULTS);
        }
    }
}
