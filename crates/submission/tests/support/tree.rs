//! Directory trees in tests: what is in them, and putting files there.

use std::{collections::BTreeMap, fs, path::Path};

/// Every file below `root` by its path with `/` between the parts.
pub(crate) fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
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

/// Writes a file and the directories that it needs.
pub(crate) fn put(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}
