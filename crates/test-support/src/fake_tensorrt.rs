//! Fakes of CUDA's driver and of a TensorRT with its shim, compiled for the test from `crates/test-support/fakes`: together they run engines on
//! the CPU, in the streams and memory of a driver that can be made to fail.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

/// TensorRT's library, and the shim for it, as [`FakeTensorrt::new`] has them.
const LIBRARY: &str = "libnvinfer.so.8";
const SHIM: &str = "libregatta_trt-8.5.2.so";

/// A directory with all of them.
pub struct FakeTensorrt {
    directory: TempDir,
}

impl FakeTensorrt {
    /// Compiles them, with a shim of its own ABI.
    pub fn new() -> Self {
        Self::with_shim(&[])
    }

    /// Compiles them, the shim with these flags.
    pub fn with_shim(flags: &[&str]) -> Self {
        let twins = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        for place in [twins.cuda(), twins.libraries(), twins.shims()] {
            fs::create_dir(place).unwrap();
        }
        twins.compile_cuda(&[]);
        compile("version", &twins.libraries().join(LIBRARY), &[]);
        let face = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/tensorrt/shim");
        compile(
            "trt_shim",
            &twins.shims().join(SHIM),
            &[&["-I", face.to_str().unwrap()], flags].concat(),
        );
        twins
    }

    /// Has the library of another major version, and shims of these versions in place of 8.5.2's. Which version the library then says
    /// is the affair of `TWIN_TRT_VERSION`.
    pub fn become_version(&self, library: &str, shims: &[&str]) {
        fs::rename(self.libraries().join(LIBRARY), self.libraries().join(library)).unwrap();
        // A shim says the version in its name.
        let made = self.shims().join(SHIM);
        for shim in shims.iter().filter(|shim| **shim != "8.5.2") {
            fs::copy(&made, self.shims().join(format!("libregatta_trt-{shim}.so"))).unwrap();
        }
        if !shims.contains(&"8.5.2") {
            fs::remove_file(made).unwrap();
        }
    }

    /// Compiles the driver with these flags.
    pub fn compile_cuda(&self, flags: &[&str]) {
        // The shim's twin finds the driver that is open by its name.
        let named = ["-pthread", "-Wl,-soname,libcuda.so.1"];
        compile(
            "cuda_driver",
            &self.cuda().join("libcuda.so.1"),
            &[&named, flags].concat(),
        );
    }

    /// Where the driver lies, for `LD_LIBRARY_PATH`.
    pub fn cuda(&self) -> PathBuf {
        self.directory.path().join("cuda")
    }

    /// Where TensorRT lies, for `REGATTA_TENSORRT`.
    pub fn libraries(&self) -> PathBuf {
        self.directory.path().join("libraries")
    }

    /// Where the shim lies, for `REGATTA_PLUGINS`.
    pub fn shims(&self) -> PathBuf {
        self.directory.path().join("shims")
    }

    /// Where engines are kept, for `REGATTA_ENGINES`.
    pub fn engines(&self) -> PathBuf {
        self.directory.path().join("engines")
    }

    /// A command of the agent, in a directory, that finds all of them.
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

/// Compiles one of `crates/test-support/fakes`. A board needs no compiler: where `REGATTA_TWINS` is set the library lies there ready-made, named
/// after the source and the macros that it was compiled with (cross/test-archive.sh).
fn compile(twin: &str, library: &Path, flags: &[&str]) {
    if let Some(made) = env::var_os("REGATTA_TWINS") {
        let macros: String = flags
            .iter()
            .copied()
            .filter(|flag| flag.starts_with("-D"))
            .collect();
        let made = Path::new(&made).join(format!("{twin}{macros}.so"));
        assert!(fs::copy(&made, library).is_ok(), "{} is missing", made.display());
        return;
    }
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../crates/test-support/fakes/{twin}.c"));
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(library)
        .args(flags)
        .arg(source)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}
