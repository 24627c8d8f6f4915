//! Fakes of CUDA's driver and of TensorRT with its shim, compiled from `crates/test-support/fakes`. Together they execute engines on the
//! CPU, with the streams and memory of a driver that tests can make fail.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::at_exit::remove_at_exit;

/// File name of TensorRT's library, as [`FakeTensorrt::new`] compiles it.
const LIBRARY: &str = "libnvinfer.so.8";
const SHIM: &str = "libregatta_trt-8.5.2.so";

/// A directory with the fake driver, the fake TensorRT and its shim.
pub struct FakeTensorrt {
    directory: TempDir,
}

impl FakeTensorrt {
    /// Compiles the fakes with a shim of the expected ABI.
    pub fn new() -> Self {
        Self::with_shim(&[])
    }

    /// Compiles the fakes; `flags` apply to the shim.
    pub fn with_shim(flags: &[&str]) -> Self {
        let fakes = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        for place in [fakes.cuda(), fakes.libraries(), fakes.shims()] {
            fs::create_dir(place).unwrap();
        }
        fakes.compile_cuda(&[]);
        compile("version", &fakes.libraries().join(LIBRARY), &[]);
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/tensorrt/shim");
        compile(
            "trt_shim",
            &fakes.shims().join(SHIM),
            &[&["-I", include.to_str().unwrap()], flags].concat(),
        );
        fakes
    }

    /// Keeps the directory until this process ends, for fakes in a `static`.
    pub fn remove_at_exit(&self) {
        remove_at_exit(self.directory.path().to_owned());
    }

    /// Renames the library to that of another major version, and replaces the shim of 8.5.2 by shims of these versions. The environment
    /// variable `FAKE_TRT_VERSION` sets the version that the library reports.
    pub fn become_version(&self, library: &str, shims: &[&str]) {
        fs::rename(self.libraries().join(LIBRARY), self.libraries().join(library)).unwrap();
        // The agent reads a shim's version from its file name.
        let made = self.shims().join(SHIM);
        for shim in shims.iter().filter(|shim| **shim != "8.5.2") {
            fs::copy(&made, self.shims().join(format!("libregatta_trt-{shim}.so"))).unwrap();
        }
        if !shims.contains(&"8.5.2") {
            fs::remove_file(made).unwrap();
        }
    }

    /// Compiles a library with the plug-in of `FAKE_TRT_PLUGIN`.
    pub fn compile_plugin(&self, library: &Path) {
        compile("trt_plugin", library, &[]);
    }

    /// Compiles the driver with `flags`.
    pub fn compile_cuda(&self, flags: &[&str]) {
        // The fake shim finds the loaded driver by its soname.
        let named = ["-pthread", "-Wl,-soname,libcuda.so.1"];
        compile(
            "cuda_driver",
            &self.cuda().join("libcuda.so.1"),
            &[&named, flags].concat(),
        );
    }

    /// Returns the directory of the driver, for `LD_LIBRARY_PATH`.
    pub fn cuda(&self) -> PathBuf {
        self.directory.path().join("cuda")
    }

    /// Returns the directory of TensorRT, for `REGATTA_TENSORRT`.
    pub fn libraries(&self) -> PathBuf {
        self.directory.path().join("libraries")
    }

    /// Returns the directory of the shim, for `REGATTA_PLUGINS`.
    pub fn shims(&self) -> PathBuf {
        self.directory.path().join("shims")
    }

    /// Returns the directory of the engine cache, for `REGATTA_ENGINES`.
    pub fn engines(&self) -> PathBuf {
        self.directory.path().join("engines")
    }

    /// Returns an agent command in `directory` whose environment points to all fakes.
    pub fn agent(&self, program: &str, directory: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(directory)
            .env_remove("MLPERF_SCRATCH_PATH")
            .env("LD_LIBRARY_PATH", self.cuda())
            .env("REGATTA_TENSORRT", self.libraries())
            .env("REGATTA_PLUGINS", self.shims())
            .env("REGATTA_ENGINES", self.engines());
        command
    }
}

/// Compiles a library that registers plug-ins with the real TensorRT in the ways that the macros in `flags` select (fakes/trt_registration.c).
pub fn compile_registration(library: &Path, flags: &[&str]) {
    compile("trt_registration", library, flags);
}

/// Compiles one of `crates/test-support/fakes`. A board needs no compiler: with `REGATTA_FAKES` set, the compiled library is copied from
/// there. Its name consists of the source's name and the macros (cross/test-archive.sh).
fn compile(fake: &str, library: &Path, flags: &[&str]) {
    if let Some(made) = env::var_os("REGATTA_FAKES") {
        let macros: String = flags
            .iter()
            .copied()
            .filter(|flag| flag.starts_with("-D"))
            .collect();
        let made = Path::new(&made).join(format!("{fake}{macros}.so"));
        assert!(fs::copy(&made, library).is_ok(), "{} is missing", made.display());
        return;
    }
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../crates/test-support/fakes/{fake}.c"));
    let output = Command::new("cc")
        // A product and a sum are rounded each, as in the references.
        .args(["-O2", "-ffp-contract=off", "-shared", "-fPIC", "-o"])
        .arg(library)
        .args(flags)
        .arg(source)
        .arg("-lm")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}
