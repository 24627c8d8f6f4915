//! Tests that archives are unpacked completely, that unpacking continues after an interruption, and that archives are refused when they are
//! incomplete, too large, or contain paths that leave the directory.

#![expect(clippy::unwrap_used, reason = "test code")]

mod made;

use std::{collections::BTreeMap, fs, path::Path};

use made::{Place, gzip, images, tar_of, zip_of};
use proptest::prelude::*;
use regatta_archives::{Archive, ArchiveError, ArchiveKind, Entry, Limits, UnpackReport, Unpacking};
use tar::EntryType;

const LIMITS: Limits = Limits {
    files: 100,
    bytes: 1 << 20,
};

fn unpack_into(archive: &Path, directory: &Path, limits: Limits) -> Result<UnpackReport, ArchiveError> {
    let archive = Archive::open(archive)?;
    let unpacking = Unpacking {
        archive: &archive,
        directory,
        limits,
        is_selected: &|_| true,
    };
    unpacking.run(&mut |_| {})
}

fn files_below(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap();
    let mut files = BTreeMap::new();
    for entry in entries {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            let inside = files_below(&entry.path()).into_iter();
            files.extend(inside.map(|(inner, content)| (format!("{name}/{inner}"), content)));
        } else {
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    files
}

/// Returns the error message with which listing and unpacking refuse an archive.
fn refusals(place: &Place, bytes: &[u8]) -> [String; 2] {
    let path = place.archive(bytes);
    let listed = Archive::open(&path).and_then(|archive| archive.entries());
    let unpacked = unpack_into(&path, &place.directory(), LIMITS)
        .unwrap_err()
        .to_string();
    let strip = |text: String| text.replace(&path.display().to_string(), "ARCHIVE");
    [
        listed
            .err()
            .map_or_else(|| "listed".to_owned(), |error| strip(error.to_string())),
        strip(unpacked),
    ]
}

#[test]
fn every_kind_is_recognised_listed_and_unpacked() {
    let images = images(5);
    let tar = tar_of(&images);
    for (bytes, kind) in [
        (tar.clone(), ArchiveKind::Tar),
        (gzip(&tar), ArchiveKind::TarGz),
        (zip_of(&images), ArchiveKind::Zip),
    ] {
        let place = Place::new();
        let path = place.archive(&bytes);
        let archive = Archive::open(&path).unwrap();
        assert_eq!(archive.kind(), kind);
        assert_eq!(archive.bytes(), bytes.len() as u64);
        let expected = images.iter().map(|(name, content)| Entry {
            name: name.clone(),
            bytes: content.len() as u64,
        });
        let listed = archive.entries().unwrap();
        assert_eq!(listed, (kind != ArchiveKind::TarGz).then(|| expected.collect()));
        let report = unpack_into(&path, &place.directory(), LIMITS).unwrap();
        assert_eq!((report.files, report.unchanged), (5, 0));
        assert_eq!(files_below(&place.directory()), images.iter().cloned().collect());
    }
}

#[test]
fn unpacking_continues_and_replaces_a_file_of_another_size() {
    let images = images(4);
    for bytes in [tar_of(&images), gzip(&tar_of(&images)), zip_of(&images)] {
        let place = Place::new();
        let path = place.archive(&bytes);
        let directory = place.directory();
        fs::create_dir_all(directory.join("val")).unwrap();
        fs::write(directory.join(&images[0].0), &images[0].1).unwrap();
        fs::write(directory.join(&images[1].0), &images[1].1[..10]).unwrap();
        // The file that a killed call was writing.
        fs::write(directory.join(".unpacking"), b"half").unwrap();
        let report = unpack_into(&path, &directory, LIMITS).unwrap();
        assert_eq!((report.files, report.unchanged), (4, 1));
        assert_eq!(files_below(&directory), images.iter().cloned().collect());
        assert_eq!(unpack_into(&path, &directory, LIMITS).unwrap().unchanged, 4);
    }
}

#[test]
fn other_files_are_left_out() {
    let place = Place::new();
    let images = images(4);
    let archive = Archive::open(&place.archive(&gzip(&tar_of(&images)))).unwrap();
    let unpacking = Unpacking {
        archive: &archive,
        directory: &place.directory(),
        limits: LIMITS,
        is_selected: &|name| name == images[2].0,
    };
    let mut steps = Vec::new();
    unpacking.run(&mut |report| steps.push(report.files)).unwrap();
    assert_eq!(steps, [1]);
    assert_eq!(
        files_below(&place.directory()),
        BTreeMap::from([images[2].clone()])
    );
}

#[test]
fn an_incomplete_archive_is_refused_before_anything_is_unpacked() {
    let incomplete = "ARCHIVE is incomplete: the archive ends early, as after an interrupted download";
    let place = Place::new();
    let images = images(5);
    let tar = tar_of(&images);
    // Cut inside a file, between two files, and before the end.
    let half = tar.len() / 2;
    for length in [half, half / 512 * 512, tar.len() - 1024] {
        assert_eq!(refusals(&place, &tar[..length])[0], incomplete, "{length}");
    }
    let zip = zip_of(&images);
    assert_eq!(refusals(&place, &zip[..zip.len() / 2]), [incomplete, incomplete]);
    assert_eq!(refusals(&place, &zip[..zip.len() - 1]), [incomplete, incomplete]);
    let packed = gzip(&tar);
    let [listed, unpacked] = refusals(&place, &packed[..packed.len() - 9]);
    assert_eq!((listed.as_str(), unpacked.as_str()), ("listed", incomplete));
}

#[test]
fn other_files_are_not_archives() {
    let place = Place::new();
    for bytes in [&b""[..], b"\xff\xd8\xff\xe0 a photograph", &[0; 2048], b"PK"] {
        let refused = "ARCHIVE is not a tar, tar.gz or zip archive";
        assert_eq!(refusals(&place, bytes), [refused, refused]);
    }
}

#[test]
fn links_special_files_and_paths_outside_the_directory_are_refused() {
    let link = "is a link";
    let special = "is neither a file nor a directory";
    let path = "leads out of the directory or is not a valid path";
    for (name, kind, reason) in [
        ("link", EntryType::Symlink, link),
        ("hard", EntryType::Link, link),
        ("pipe", EntryType::Fifo, special),
        ("disk", EntryType::Block, special),
        ("../outside", EntryType::Regular, path),
        ("/etc/passwd", EntryType::Regular, path),
        ("a/../../b", EntryType::Regular, path),
        ("a\u{1b}b", EntryType::Regular, path),
        ("../", EntryType::Directory, path),
    ] {
        let place = Place::new();
        let tar = made::tar_with(name, kind);
        let refused = format!("ARCHIVE is refused: its entry `{name}` {reason}");
        assert_eq!(refusals(&place, &tar), [refused.clone(), refused.clone()]);
        assert_eq!(refusals(&place, &gzip(&tar))[1], refused);
        let found = files_below(&place.directory());
        assert!(found.keys().all(|name| name == "before"), "{found:?}");
    }
    let place = Place::new();
    for name in ["../outside", "/etc/passwd", "a/../../b", "..//"] {
        let refused = format!("ARCHIVE is refused: its entry `{name}` {path}");
        let zip = zip_of(&[(name.to_owned(), Vec::new())]);
        assert_eq!(refusals(&place, &zip), [refused.clone(), refused]);
    }
}

#[test]
fn more_or_larger_files_than_expected_are_refused() {
    let images = images(5);
    let content: u64 = images.iter().map(|(_, content)| content.len() as u64).sum();
    for bytes in [tar_of(&images), gzip(&tar_of(&images)), zip_of(&images)] {
        let place = Place::new();
        let path = place.archive(&bytes);
        let limited = |files, bytes| {
            unpack_into(&path, &place.directory(), Limits { files, bytes }).map_err(|error| error.to_string())
        };
        let error = limited(4, content).unwrap_err();
        assert!(error.ends_with("is refused: it has more than 4 files"), "{error}");
        let error = limited(5, content - 1).unwrap_err();
        let expected = format!("is refused: its files have more than {} bytes", content - 1);
        assert!(error.ends_with(&expected), "{error}");
        assert_eq!(limited(5, content).unwrap().files, 5);
    }
}

/// A zip bomb states a small size in its directory.
#[test]
fn a_zip_whose_content_differs_from_its_directory_is_damaged() {
    let place = Place::new();
    let images = [("a".to_owned(), vec![7; 100_000])];
    let zip = zip_of(&images);
    let directory = zip.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    let mut small = zip.clone();
    small[directory + 24..directory + 28].copy_from_slice(&10_u32.to_le_bytes());
    let [listed, unpacked] = refusals(&place, &small);
    assert_eq!(
        (listed.as_str(), unpacked.as_str()),
        (
            "listed",
            "ARCHIVE is damaged: `a`: File is larger than its declared uncompressed size"
        )
    );
    let mut other = zip.clone();
    other[directory + 16] ^= 1;
    assert_eq!(
        refusals(&place, &other)[1],
        "ARCHIVE is damaged: `a`: Invalid checksum"
    );
    let mut locked = zip;
    locked[directory + 8] |= 1;
    let refused = "ARCHIVE is refused: its entry `a` is encrypted";
    assert_eq!(refusals(&place, &locked), [refused, refused]);
    assert_eq!(files_below(&place.directory()), BTreeMap::new());
}

proptest! {
    /// For arbitrary archives, nothing is written outside the directory, and no more than the limits allow.
    #[test]
    fn changed_bytes_never_write_elsewhere(
        kind in 0..3_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        length in any::<prop::sample::Index>(),
    ) {
        let images = images(3);
        let tar = tar_of(&images);
        let mut bytes = [tar.clone(), gzip(&tar), zip_of(&images)][kind].clone();
        for (place, value) in &changes {
            let place = place.index(bytes.len());
            bytes[place] = *value;
        }
        if changes.len() > 4 {
            bytes.truncate(length.index(bytes.len()));
        }
        let place = Place::new();
        let path = place.archive(&bytes);
        let limits = Limits { files: 3, bytes: 10_000 };
        let listed = Archive::open(&path).and_then(|archive| archive.entries());
        let unpacked = unpack_into(&path, &place.directory(), limits);
        if let (Ok(Some(entries)), Ok(report)) = (&listed, &unpacked) {
            prop_assert_eq!(entries.len() as u64, report.files);
        }
        let written = if place.directory().exists() { files_below(&place.directory()) } else { BTreeMap::new() };
        prop_assert!(written.len() <= 3);
        prop_assert!(written.values().map(Vec::len).sum::<usize>() <= 10_000);
        prop_assert_eq!(fs::read_dir(place.root()).unwrap().count(), 1 + usize::from(place.directory().exists()));
    }
}
