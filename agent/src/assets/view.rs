//! A run's view of its assets: a scratch directory of links. Each asset is at its path. All other files are those of the
//! device's own scratch directory. Neither assets nor the device's files are written.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// Creates the directory `view` of links: `assets` at their paths, over the contents of `own`.
///
/// # Errors
/// When a file operation fails.
pub(crate) fn make(view: &Path, own: Option<&Path>, assets: &BTreeMap<String, PathBuf>) -> io::Result<()> {
    if view.exists() {
        // The directory only contains links and directories.
        fs::remove_dir_all(view)?;
    }
    let places: Vec<(Vec<&str>, &Path)> = assets
        .iter()
        .map(|(place, target)| {
            let parts = place.split('/').filter(|part| !part.is_empty()).collect();
            (parts, target.as_path())
        })
        .collect();
    lay(view, own, &places)
}

fn lay(view: &Path, own: Option<&Path>, places: &[(Vec<&str>, &Path)]) -> io::Result<()> {
    fs::create_dir_all(view)?;
    let mut inner: BTreeMap<&str, Vec<(Vec<&str>, &Path)>> = BTreeMap::new();
    for (parts, target) in places {
        let Some((first, rest)) = parts.split_first() else {
            continue;
        };
        inner.entry(first).or_default().push((rest.to_vec(), target));
    }
    if let Some(own) = own {
        for name in names(own)? {
            if name.to_str().is_none_or(|name| !inner.contains_key(name)) {
                symlink(own.join(&name), view.join(&name))?;
            }
        }
    }
    for (name, places) in inner {
        let below = view.join(name);
        match places.iter().find(|(rest, _)| rest.is_empty()) {
            Some((_, target)) => symlink(target, &below)?,
            None => lay(&below, own.map(|own| own.join(name)).as_deref(), &places)?,
        }
    }
    Ok(())
}

/// Returns the names in a directory of the device. A missing directory is empty.
fn names(own: &Path) -> io::Result<Vec<OsString>> {
    match fs::read_dir(own) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        listed => listed
            .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect())
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", own.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assets_take_precedence_over_local_files() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for file in [
            "own/models/a/old.onnx",
            "own/models/b/b.onnx",
            "own/data/x.npy",
            "shelf/new",
        ] {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), file).unwrap();
        }
        let assets = BTreeMap::from([
            ("models/a/new.onnx".to_owned(), at("shelf/new")),
            ("deep/er/new".to_owned(), at("shelf/new")),
        ]);
        for _ in 0..2 {
            make(&at("view"), Some(&at("own")), &assets).unwrap();
            let read = |path: &str| fs::read_to_string(at("view").join(path)).unwrap();
            assert_eq!(read("models/a/new.onnx"), "shelf/new");
            assert_eq!(read("deep/er/new"), "shelf/new");
            assert_eq!(read("models/a/old.onnx"), "own/models/a/old.onnx");
            assert_eq!(read("models/b/b.onnx"), "own/models/b/b.onnx");
            assert_eq!(read("data/x.npy"), "own/data/x.npy");
        }
        make(&at("view"), None, &assets).unwrap();
        assert!(!at("view/data").exists() && at("own/data/x.npy").exists());
        make(&at("view"), Some(&at("nowhere")), &assets).unwrap();
        // A directory that exists but cannot be read is an error, not an empty directory.
        symlink("circle", at("circle")).unwrap();
        assert!(make(&at("view"), Some(&at("circle")), &assets).is_err());
    }
}
