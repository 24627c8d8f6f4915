//! Directory trees in tests: reading, writing and copying them.

use std::{collections::BTreeMap, fs, path::Path};

/// Reads every file below `root`; a key is a path with `/` between the parts.
#[must_use]
pub fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut ahead = vec![root.to_owned()];
    while let Some(directory) = ahead.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                ahead.push(path);
            } else {
                let below = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.insert(below, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Lists the paths of every file below `root`, one per line.
#[must_use]
pub fn names(root: &Path) -> String {
    files(root).keys().map(|name| format!("{name}\n")).collect()
}

/// Writes a file and creates its directories.
pub fn put(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Copies the directories and files below `from`. The copies are writable even if the originals are not, as in a read-only corpus.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::write(target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}
