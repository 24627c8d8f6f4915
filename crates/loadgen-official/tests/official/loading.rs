//! Tests of loading: other files than Regatta's plug-ins are refused, and the working directory does not affect a run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use regatta_loadgen_official::{Plugin, PluginError};
use regatta_test_requirements::{Requirement, skip};

fn library(directory: &Path, source: &str) -> Option<PathBuf> {
    let (c, so) = (
        directory.join("library.c"),
        directory.join("libregatta_loadgen-test.so"),
    );
    fs::write(&c, source).unwrap();
    match Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&so, &c])
        .status()
    {
        Ok(status) if status.success() => Some(so),
        _ => {
            skip(Requirement::Package, "no C compiler (Debian: gcc)");
            None
        }
    }
}

#[test]
fn another_version_of_the_c_interface_is_refused_with_both_named() {
    let directory = tempfile::tempdir().unwrap();
    let Some(file) = library(
        directory.path(),
        "unsigned rlg_abi_version(void) { return 99; }\n",
    ) else {
        return;
    };
    let error = Plugin::open(&file).unwrap_err();
    assert!(
        matches!(error, PluginError::AbiVersion { found: 99, .. }),
        "{error:?}"
    );
    let words = error.to_string();
    assert!(
        words.contains("version 99") && words.contains("needs version 1") && words.contains("build.sh"),
        "{words}"
    );
}

#[test]
fn a_library_without_the_c_interface_is_not_a_plugin() {
    for (source, symbol) in [
        ("int other;\n", "rlg_abi_version"),
        ("unsigned rlg_abi_version(void) { return 1; }\n", "rlg_build_info"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let Some(file) = library(directory.path(), source) else {
            return;
        };
        let error = Plugin::open(&file).unwrap_err().to_string();
        assert!(
            error.contains(symbol) && error.contains("is not a LoadGen plug-in"),
            "{error}"
        );
    }
}

#[test]
fn a_file_that_is_not_a_library_is_refused_with_the_loaders_reason() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("libregatta_loadgen-x.so");
    fs::write(&file, "text").unwrap();
    let error = Plugin::open(&file).unwrap_err();
    assert!(std::error::Error::source(&error).is_some(), "{error}");
    assert!(error.to_string().contains("libregatta_loadgen-x.so"), "{error}");
}

#[test]
fn an_audit_config_in_the_working_directory_is_not_picked_up() {
    let Some(plugin) = regatta_test_support::official_loadgen::plugin_file("6.0.17") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("audit.config"), "*.*.min_query_count = 7\n").unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/loadgen-official/bridge");
    let driver = directory.path().join("driver");
    let built = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .args([&driver, &sources.join("driver.c")])
        .arg("-ldl")
        .status();
    assert!(built.unwrap().success());
    let run = Command::new(&driver)
        .current_dir(directory.path())
        .arg(&plugin)
        .args([".", "SingleStream", "50"])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let built = String::from_utf8(run.stdout).unwrap();
    let described = fs::read_to_string(plugin.with_extension("json")).unwrap();
    assert!(
        built.starts_with(&described),
        "the .json is what is compiled in: {built}"
    );
    assert!(
        built.contains(
            "
issued 50 "
        ),
        "{built}"
    );
    let detail = fs::read_to_string(directory.path().join("mlperf_log_detail.txt")).unwrap();
    assert!(
        detail.contains("\"requested_min_query_count\", \"value\": 50") && !detail.contains("audit.config"),
        "{detail}"
    );
}
