//! Tests of adding, finding and sweeping assets.

use std::{sync::mpsc, thread};

use regatta_types::samples::SampleSet;

use super::*;

fn held(dir: &Path) -> LockedAssetStore {
    AssetStore(dir.join("assets")).hold(|| {}).unwrap()
}

#[test]
fn a_sweep_waits_until_the_store_knows_what_is_being_put_in() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("model"), "new").unwrap();
    let adding = held(dir.path());
    let added = adding.put(&dir.path().join("model"), "models/model").unwrap();
    let place = adding.asset_store.place(&added.asset.sha256).unwrap();
    let (waits, is_waiting) = mpsc::channel();
    let (knows, store) = mpsc::channel();
    let asset_store = adding.asset_store.clone();
    let sweeper = thread::spawn(move || {
        let asset_store = asset_store.hold(|| waits.send(()).unwrap()).unwrap();
        let kept: Vec<Asset> = store.try_iter().collect();
        asset_store.sweep(&kept).unwrap()
    });
    is_waiting.recv().unwrap();
    assert!(place.exists());
    knows.send(added.asset).unwrap();
    drop(adding);
    assert_eq!(sweeper.join().unwrap(), SweepResult::default());
    assert!(place.exists());
}

#[test]
fn half_made_samples_are_not_put_in() {
    let dir = tempfile::tempdir().unwrap();
    let samples = dir.path().join("data/int8_linear");
    fs::create_dir_all(&samples).unwrap();
    fs::write(samples.join("a.npy"), "of an earlier scale").unwrap();
    fs::write(samples.join(SampleSet::UNFINISHED), "").unwrap();
    let asset_store = held(dir.path());
    for source in [&samples, &dir.path().join("data")] {
        let refused = asset_store.put(source, "data").unwrap_err();
        assert!(matches!(refused, AssetStoreError::NotWhole(_)), "{refused}");
    }
    assert_eq!(
        asset_store.sweep(&[]).unwrap(),
        SweepResult::default(),
        "nothing was begun"
    );
    fs::remove_file(samples.join(SampleSet::UNFINISHED)).unwrap();
    assert_eq!(asset_store.put(&samples, "data").unwrap().files, 1);
}

#[test]
fn equal_files_are_stored_once_and_unused_ones_removed() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    fs::create_dir_all(source.join("inner")).unwrap();
    fs::write(source.join("b"), "same").unwrap();
    fs::write(source.join("inner/a"), "same").unwrap();
    fs::write(source.join("other"), "other").unwrap();
    let asset_store = held(dir.path());
    let tree = asset_store.put(&source, "data").unwrap();
    assert_eq!((tree.files, tree.asset.bytes), (3, 13));
    let manifest = fs::read_to_string(asset_store.asset_store.place(&tree.asset.sha256).unwrap()).unwrap();
    let paths: Vec<_> = manifest
        .lines()
        .map(|line| line.split(' ').nth(2).unwrap())
        .collect();
    assert_eq!(paths, ["b", "inner/a", "other"]);
    let file = asset_store.put(&source.join("other"), "models/other").unwrap();
    let again = asset_store.put(&source, "elsewhere").unwrap();
    assert_eq!(
        again.asset.sha256, tree.asset.sha256,
        "a tree's name is its content's"
    );
    assert_eq!(
        asset_store.sweep(std::slice::from_ref(&tree.asset)).unwrap(),
        SweepResult::default()
    );
    // The manifest and "same".
    assert_eq!(asset_store.sweep(&[file.asset]).unwrap().files, 2);
    assert_eq!(
        asset_store.sweep(&[]).unwrap(),
        SweepResult { files: 1, bytes: 5 }
    );
}

#[test]
fn a_tree_whose_manifest_does_not_read_loses_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    fs::create_dir_all(&source).unwrap();
    fs::write(source.join("a"), "of a tree").unwrap();
    let asset_store = held(dir.path());
    let tree = asset_store.put(&source, "data").unwrap().asset;
    let manifest = asset_store.asset_store.place(&tree.sha256).unwrap();
    let kept = sha256_of_file(&source.join("a")).unwrap();
    let kept = asset_store.asset_store.place(&kept.hex()).unwrap();

    fs::write(&manifest, "no line of a manifest\n").unwrap();
    let refused = asset_store.sweep(std::slice::from_ref(&tree)).unwrap_err();
    assert!(matches!(refused, AssetStoreError::Manifest { .. }), "{refused}");
    fs::remove_file(&manifest).unwrap();
    fs::create_dir(&manifest).unwrap();
    let refused = asset_store.sweep(std::slice::from_ref(&tree)).unwrap_err();
    assert!(matches!(refused, AssetStoreError::Io { .. }), "{refused}");
    assert!(kept.exists());

    fs::remove_dir(&manifest).unwrap();
    asset_store.put(&source, "data").unwrap();
    assert_eq!(asset_store.sweep(&[tree]).unwrap(), SweepResult::default());
}
