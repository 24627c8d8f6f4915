//! Tests of how the real shim registers the plug-ins of a library with the real TensorRT-RTX: by the library's own constructor, by
//! `initLibNvInferPlugins`, or by the registry. The libraries have no plug-ins.

use regatta_test_support::fake_tensorrt::compile_registration;

use super::Place;

/// Compiles `library` of the scratch directory. Builds an engine with it, and returns the exit code, the ways of registration that were used, and
/// standard error.
fn build_with(place: &Place, library: &str, flags: &[&str]) -> (Option<i32>, Vec<String>, String) {
    compile_registration(&place.scratch.path().join(library), flags);
    let output = place.engine(&["build", "--onnx", "digits.onnx", "--plugins", library]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    let used = stderr.lines().filter_map(|line| {
        let way = line.strip_prefix("[registration: ")?.strip_suffix("]")?;
        Some(way.to_owned())
    });
    (output.status.code(), used.collect(), stderr)
}

#[test]
fn plug_ins_are_registered_in_the_way_that_their_library_has() {
    let Some(place) = Place::real() else { return };
    for (flags, expected) in [
        (&["-DREGISTERS_ITSELF"][..], &["constructor"][..]),
        (&["-DINITIALISES=true"], &["initLibNvInferPlugins"]),
        (&["-DEXPORTS_CREATORS"], &["getCreators"]),
        (
            &["-DREGISTERS_ITSELF", "-DINITIALISES=true", "-DEXPORTS_CREATORS"],
            &["constructor", "initLibNvInferPlugins"],
        ),
    ] {
        let (code, used, stderr) = build_with(&place, "./liblayers.so", flags);
        assert_eq!(code, Some(0), "{flags:?}: {stderr}");
        assert_eq!(used, expected, "{flags:?}: {stderr}");
    }
    let (code, used, stderr) = build_with(&place, "./libfailing.so", &["-DINITIALISES=false"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert_eq!(used, ["initLibNvInferPlugins"], "{stderr}");
    let words = "the plug-in library ./libfailing.so cannot be loaded: its initLibNvInferPlugins failed";
    assert!(stderr.contains(words), "{stderr}");
}

/// Such a library may need TensorRT's own plug-ins, whose functions the dynamic loader finds through it.
#[test]
fn functions_of_the_libraries_that_a_library_needs_are_not_called() {
    let Some(place) = Place::real() else { return };
    for macros in ["-DINITIALISES=false", "-DEXPORTS_CREATORS"] {
        let needed = place.scratch.path().join("libneeded.so");
        compile_registration(&needed, &[macros]);
        let flags = [
            "-DREGISTERS_ITSELF",
            "-Wl,--no-as-needed",
            needed.to_str().unwrap(),
        ];
        let (code, used, stderr) = build_with(&place, "./liblayers.so", &flags);
        assert_eq!(code, Some(0), "{macros}: {stderr}");
        assert_eq!(used, ["constructor"], "{macros}: {stderr}");
    }
}
