//! What the tests share: plug-ins built from the PyPI source package, a SUT that answers at once, a sample library.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

use regatta_loadgen::{
    request::ConfText,
    sut::{
        Completer, Query, QuerySampleIndex, QuerySampleLibrary, QuerySampleResponse, SutError,
        SystemUnderTest,
    },
};

/// The plug-in of a version on PyPI, built once into `REGATTA_ORACLES` (default: beside cargo's own output). `None`, with
/// the reason printed, where it cannot be built; with `CI=true` that is a failure.
pub(crate) fn plugin_file(version: &str) -> Option<PathBuf> {
    match build(version) {
        Ok(file) => Some(file),
        Err(reason) => {
            assert!(
                env::var("CI").as_deref() != Ok("true"),
                "no official LoadGen {version}: {reason}"
            );
            eprintln!("skipped: no official LoadGen {version}: {reason}");
            None
        }
    }
}

fn build(version: &str) -> Result<PathBuf, String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cross/loadgen-official");
    let cache = oracle_cache().join(format!("plugins-{:016x}", fingerprint(&sources)));
    let file = cache.join(format!("libregatta_loadgen-{version}-NA.so"));
    fs::create_dir_all(&cache).map_err(|e| format!("{}: {e}", cache.display()))?;
    // Tests run side by side, in threads and in processes: one of them builds.
    let lock = fs::File::create(cache.join("lock")).map_err(|e| e.to_string())?;
    lock.lock().map_err(|e| e.to_string())?;
    if file.exists() {
        return Ok(file);
    }
    let built = Command::new(sources.join("build.sh"))
        .args(["--pypi", version, "--out"])
        .arg(&cache)
        .output()
        .map_err(|e| format!("build.sh: {e}"))?;
    if built.status.success() {
        return Ok(file);
    }
    Err(String::from_utf8_lossy(&built.stderr).trim().to_owned())
}

fn oracle_cache() -> PathBuf {
    let in_target = || Path::new(env!("CARGO_TARGET_TMPDIR")).join("oracles");
    env::var_os("REGATTA_ORACLES").map_or_else(in_target, PathBuf::from)
}

/// Changes when a plug-in's making does, so that no stale one is tested.
fn fingerprint(sources: &Path) -> u64 {
    let made_of = [
        "build.sh",
        "shim.cc",
        "settings.cc",
        "settings.h",
        "regatta_loadgen.h",
        "exports.map",
    ];
    let bytes = made_of
        .iter()
        .flat_map(|name| fs::read(sources.join(name)).unwrap());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A conf text.
pub(crate) fn conf(text: &str) -> ConfText {
    ConfText::new("test.conf", text)
}

/// Answers within `issue_query` with the sample's index; remembers what it was asked.
#[derive(Default)]
pub(crate) struct Null {
    pub(crate) queries: Mutex<Vec<Vec<QuerySampleIndex>>>,
    pub(crate) remember: bool,
}

impl SystemUnderTest for Null {
    fn name(&self) -> &str {
        "null"
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        if self.remember {
            let indices = (0..query.len()).map(|i| query.sample(i).index).collect();
            self.queries.lock().unwrap().push(indices);
        }
        for position in 0..query.len() {
            let sample = query.sample(position);
            let data = (sample.index as u64).to_le_bytes();
            completer.complete(&[QuerySampleResponse {
                id: sample.id,
                data: &data,
                n_tokens: 1,
            }]);
        }
        Ok(())
    }

    fn flush_queries(&self) -> Result<(), SutError> {
        Ok(())
    }
}

/// A library that remembers what is loaded.
pub(crate) struct Samples {
    pub(crate) total: usize,
    pub(crate) performance: usize,
    pub(crate) loaded: Mutex<Vec<QuerySampleIndex>>,
}

impl Samples {
    pub(crate) fn new(total: usize, performance: usize) -> Self {
        Self {
            total,
            performance,
            loaded: Mutex::default(),
        }
    }
}

impl QuerySampleLibrary for Samples {
    fn name(&self) -> &str {
        "samples"
    }
    fn total_sample_count(&self) -> usize {
        self.total
    }
    fn performance_sample_count(&self) -> usize {
        self.performance
    }
    fn load_samples_to_ram(&self, samples: &[QuerySampleIndex]) -> Result<(), SutError> {
        self.loaded.lock().unwrap().extend_from_slice(samples);
        Ok(())
    }
    fn unload_samples_from_ram(&self, samples: &[QuerySampleIndex]) -> Result<(), SutError> {
        let mut loaded = self.loaded.lock().unwrap();
        let remaining = loaded
            .len()
            .checked_sub(samples.len())
            .ok_or("unloaded more than was loaded")?;
        loaded.truncate(remaining);
        Ok(())
    }
}
