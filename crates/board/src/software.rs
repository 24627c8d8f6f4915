//! The board's system software: L4T and JetPack, CUDA, TensorRT, cuDNN, driver. The versions come from release files,
//! library names and dpkg's database. No program is run.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead as _, BufReader},
};

use serde::Serialize;

use super::root::Root;

const JETPACKS: &str = include_str!("jetpacks.csv");
/// Library directories on Debian and Ubuntu.
const LIBRARIES: [&str; 2] = ["usr/lib/aarch64-linux-gnu", "usr/lib/x86_64-linux-gnu"];

/// The system software.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Software {
    /// Operating system, from os-release.
    pub(crate) os: Option<String>,
    /// Kernel release.
    pub(crate) kernel: Option<String>,
    /// Jetson Linux release, for example `36.4.3`.
    pub(crate) l4t: Option<String>,
    /// JetPack release.
    pub(crate) jetpack: Option<String>,
    /// CUDA toolkit or runtime.
    pub(crate) cuda: Option<String>,
    /// TensorRT, by the library that an engine would load.
    pub(crate) tensorrt: Option<String>,
    pub(crate) cudnn: Option<String>,
    /// The driver of a discrete GPU.
    pub(crate) driver: Option<String>,
}

impl Software {
    /// Reads the system software. Versions that are missing or unknown are `None`.
    pub(crate) fn read(root: &Root) -> Self {
        let packages = installed(root);
        let l4t = l4t(root, &packages);
        let with_prefix = |prefix: &str| {
            packages
                .iter()
                .find(|(name, _)| name.starts_with(prefix))
                .map(|(_, version)| upstream(version))
        };
        Self {
            os: os_release(root, "PRETTY_NAME"),
            kernel: root.text("proc/sys/kernel/osrelease"),
            jetpack: packages
                .get("nvidia-jetpack")
                .map(|version| upstream(version))
                .or_else(|| jetpack_of(l4t.as_deref()?)),
            l4t,
            cuda: cuda(root).or_else(|| with_prefix("cuda-cudart-")),
            tensorrt: library_version(root, "libnvinfer.so.").or_else(|| with_prefix("libnvinfer")),
            cudnn: with_prefix("libcudnn").or_else(|| library_version(root, "libcudnn.so.")),
            driver: driver(root),
        }
    }
}

/// Returns a value of os-release without its quotes.
pub(super) fn os_release(root: &Root, key: &str) -> Option<String> {
    let text = root
        .text("etc/os-release")
        .or_else(|| root.text("usr/lib/os-release"))?;
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        .map(|value| value.trim_matches(['"', '\'']).to_owned())
}

/// Returns the release from `# R36 (release), REVISION: 4.3, GCID: ...`, or the version of the package nvidia-l4t-core.
fn l4t(root: &Root, packages: &BTreeMap<String, String>) -> Option<String> {
    let from_file = || {
        let text = root.text("etc/nv_tegra_release")?;
        let line = text.lines().next()?.trim_start_matches(['#', ' ']);
        let major = line
            .strip_prefix('R')?
            .split(|c: char| !c.is_ascii_digit())
            .next()?;
        let revision = line.split_once("REVISION:")?.1.split(',').next()?.trim();
        Some(format!("{major}.{revision}"))
    };
    from_file().or_else(|| packages.get("nvidia-l4t-core").map(|version| upstream(version)))
}

/// Returns the JetPack of an L4T release. A row with two numbers matches every release of the series.
fn jetpack_of(l4t: &str) -> Option<String> {
    let rows = JETPACKS.lines().filter_map(|line| line.split_once(','));
    rows.into_iter()
        .find(|(release, _)| {
            let rest = l4t.strip_prefix(release);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
        .map(|(_, jetpack)| jetpack.to_owned())
}

fn cuda(root: &Root) -> Option<String> {
    let from_json = || {
        let text = root.text("usr/local/cuda/version.json")?;
        let json: serde_json::Value = serde_json::from_str(&text).ok()?;
        json["cuda"]["version"].as_str().map(str::to_owned)
    };
    // Up to CUDA 10: `CUDA Version 10.2.89`.
    let from_text = || {
        let text = root.text("usr/local/cuda/version.txt")?;
        text.rsplit(' ').next().map(str::to_owned)
    };
    from_json().or_else(from_text)
}

/// Returns the version in a library's longest name, for example `libnvinfer.so.10.3.0`.
fn library_version(root: &Root, prefix: &str) -> Option<String> {
    let names = LIBRARIES.into_iter().flat_map(|directory| root.names(directory));
    names
        .filter_map(|name| name.strip_prefix(prefix).map(str::to_owned))
        .filter(|version| version.starts_with(|c: char| c.is_ascii_digit()))
        .max_by_key(|version| version.split('.').count())
}

/// Returns the version in `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue ...`.
fn driver(root: &Root) -> Option<String> {
    let text = root.text("proc/driver/nvidia/version")?;
    let words = text.lines().next()?.split_ascii_whitespace();
    words
        .into_iter()
        .find(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
}

/// Returns a Debian version without epoch, build and packaging parts: `10.3.0.30` of `10.3.0.30-1+cuda12.5`.
fn upstream(version: &str) -> String {
    let version = version.split_once(':').map_or(version, |(_, rest)| rest);
    version.split(['-', '+']).next().unwrap_or(version).to_owned()
}

/// Returns the relevant packages that dpkg has installed. The file has several megabytes, so it is read line by line.
fn installed(root: &Root) -> BTreeMap<String, String> {
    const PREFIXES: [&str; 5] = [
        "nvidia-jetpack",
        "nvidia-l4t-core",
        "libnvinfer",
        "libcudnn",
        "cuda-cudart-",
    ];
    let mut packages = BTreeMap::new();
    let Ok(file) = File::open(root.path("var/lib/dpkg/status")) else {
        return packages;
    };
    let (mut name, mut is_installed) = (None, false);
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        if let Some(package) = line.strip_prefix("Package: ") {
            let is_relevant = PREFIXES.iter().any(|prefix| package.starts_with(prefix));
            name = is_relevant.then(|| package.to_owned());
        } else if let Some(status) = line.strip_prefix("Status: ") {
            is_installed = status.ends_with(" installed");
        } else if let (Some(version), Some(name)) = (line.strip_prefix("Version: "), &name)
            && is_installed
        {
            packages.insert(name.clone(), version.to_owned());
        }
    }
    packages
}
