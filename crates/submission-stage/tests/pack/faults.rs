//! Tests of trees that cannot be uploaded, and of packages that cannot be opened.

use std::{
    fs::{self, File},
    io::Read as _,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
    path::{Path, PathBuf},
    process::Command,
};

use flate2::{Compression, write::GzEncoder};
use regatta_random::SplitMix64;
use regatta_submission_stage::{
    DraftError,
    pack::{PackError, PackFindingKind, Password, UnpackLimits, hygiene, pack},
};
use regatta_test_support::tree::{files, put};
use tempfile::TempDir;

use crate::unpack;

fn secret() -> Password {
    Password::Text("secret".to_owned())
}

fn clean() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    put(&dir.path().join("closed/ACME/systems/sys.json"), "{}");
    dir
}

#[test]
fn every_finding_is_named_and_nothing_is_packed() {
    let (tree, there) = (clean(), tempfile::tempdir().unwrap());
    assert_eq!(hygiene(tree.path()).unwrap(), []);
    let at = |path: &str| tree.path().join("closed/ACME").join(path);
    put(&at(".gitkeep"), "");
    put(&at(".hidden/file"), "");
    put(&at("code/my model/a b.py"), "");
    put(&at("code/new\nline"), "");
    symlink("/etc/hostname", at("code/link")).unwrap();
    symlink("..", at("code/loop")).unwrap();
    File::create(at("big")).unwrap().set_len((50 << 20) + 1).unwrap();
    File::create(at("just_right")).unwrap().set_len(50 << 20).unwrap();
    fs::write(at("code").join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
    let status = Command::new("mkfifo").arg(at("code/pipe")).status().unwrap();
    assert!(status.success());

    let findings: Vec<_> = hygiene(tree.path())
        .unwrap()
        .into_iter()
        .map(|finding| {
            (
                finding.path.strip_prefix("closed/ACME").unwrap().to_owned(),
                finding.kind,
            )
        })
        .collect();
    let expected = [
        (PathBuf::from(".gitkeep"), PackFindingKind::Hidden),
        (".hidden".into(), PackFindingKind::Hidden),
        (
            "big".into(),
            PackFindingKind::Big {
                bytes: (50 << 20) + 1,
            },
        ),
        ("code/link".into(), PackFindingKind::Link),
        ("code/loop".into(), PackFindingKind::Link),
        ("code/my model".into(), PackFindingKind::Space),
        ("code/my model/a b.py".into(), PackFindingKind::Space),
        ("code/new\nline".into(), PackFindingKind::Name),
        ("code/pipe".into(), PackFindingKind::NoFile),
        (
            PathBuf::from(std::ffi::OsStr::from_bytes(b"code/\xff")),
            PackFindingKind::Name,
        ),
    ];
    assert_eq!(findings, expected);

    let error = pack(tree.path(), "ACME", there.path(), &secret()).unwrap_err();
    let PackError::Unclean { findings } = &error else {
        panic!("{error}")
    };
    assert_eq!(findings.len(), 10);
    insta::assert_snapshot!(error);
    assert!(files(there.path()).is_empty());
}

#[test]
fn a_division_that_is_a_link_is_a_finding() {
    let tree = clean();
    symlink("closed", tree.path().join("open")).unwrap();
    assert_eq!(hygiene(tree.path()).unwrap()[0].kind, PackFindingKind::Link);
}

#[test]
fn odd_requests_are_refused() {
    let (tree, there) = (clean(), tempfile::tempdir().unwrap());
    for name in ["", "..", "a/b", "a b", "../x", ".x"] {
        let error = pack(tree.path(), name, there.path(), &secret()).unwrap_err();
        assert!(matches!(error, PackError::NoName { .. }), "{name}");
    }
    let error = pack(there.path(), "ACME", there.path(), &secret()).unwrap_err();
    assert!(matches!(error, PackError::NoSubmission { .. }), "{error}");
    for inside in ["", "package", "closed/ACME", "closed/ACME/new/package"] {
        let inside = tree.path().join(inside);
        let error = pack(tree.path(), "ACME", &inside, &secret()).unwrap_err();
        assert!(matches!(error, PackError::Inside { .. }), "{error}");
    }
    assert_eq!(files(tree.path()).len(), 1);
}

/// `/dev/full` is a full disk.
#[test]
fn a_full_disk_is_named_and_half_a_package_is_removed() {
    let (tree, there) = (clean(), tempfile::tempdir().unwrap());
    put(&tree.path().join("closed/ACME/code/noise"), noise(1 << 20));
    let tarball = there.path().join(TARBALL);
    symlink("/dev/full", there.path().join(format!(".{TARBALL}.new"))).unwrap();
    let error = pack(tree.path(), "ACME", there.path(), &secret()).unwrap_err();
    assert!(error.to_string().contains(tarball.to_str().unwrap()), "{error}");
    assert_eq!(fs::read_dir(there.path()).unwrap().count(), 0);
}

#[test]
fn two_packs_of_one_package_do_not_mix() {
    let (tree, there) = (clean(), tempfile::tempdir().unwrap());
    put(&tree.path().join("closed/ACME/code/noise"), noise(1 << 20));
    // While another process has the lock, nothing is touched.
    let locked = File::open(there.path()).unwrap();
    rustix::fs::flock(&locked, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let error = pack(tree.path(), "ACME", there.path(), &secret()).unwrap_err();
    assert!(
        matches!(error, PackError::Draft(DraftError::Busy { .. })),
        "{error}"
    );
    assert_eq!(fs::read_dir(there.path()).unwrap().count(), 0);
    drop(locked);

    let packs = std::thread::scope(|scope| {
        let packs = [0, 1, 2].map(|_| scope.spawn(|| pack(tree.path(), "ACME", there.path(), &secret())));
        packs.map(|pack| pack.join().unwrap())
    });
    let done = packs.iter().filter(|pack| pack.is_ok()).count();
    let busy = |error: &PackError| matches!(error, PackError::Draft(DraftError::Busy { .. }));
    assert!(done > 0 && packs.iter().filter_map(|pack| pack.as_ref().err()).all(busy));
    // Package and checksum belong to one call: unpacking compares them.
    unpack(there.path(), "ACME", &there.path().join("tree"), &secret()).unwrap();
}

#[test]
fn a_tree_that_another_process_unpacks_is_left_alone() {
    let (there, output) = packed();
    let part = there.path().join(".tree.regatta-part");
    put(&part.join("closed/half"), "half");
    let locked = File::open(&part).unwrap();
    rustix::fs::flock(&locked, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let unpack = || unpack(there.path(), "ACME", &output, &secret());
    let error = unpack().unwrap_err();
    assert!(
        matches!(error, PackError::Draft(DraftError::Busy { .. })),
        "{error}"
    );
    assert!(part.join("closed/half").is_file());
    // The files of a killed process are removed.
    drop(locked);
    unpack().unwrap();
    assert!(!part.exists() && !output.join("closed/half").exists());
}

/// Bytes that do not compress.
fn noise(count: usize) -> Vec<u8> {
    SplitMix64::new(1).bytes(count)
}

/// Returns a packed submission and the directory to unpack it to.
fn packed() -> (TempDir, PathBuf) {
    let there = tempfile::tempdir().unwrap();
    pack(clean().path(), "ACME", there.path(), &secret()).unwrap();
    let output = there.path().join("tree");
    (there, output)
}

const TARBALL: &str = "mlperf_submission_ACME.tar.gz";
const SHA1: &str = "mlperf_submission_ACME.sha1";

#[test]
fn a_wrong_password_leaves_nothing_behind() {
    let (there, output) = packed();
    let before = files(there.path());
    let error = unpack(there.path(), "ACME", &output, &Password::Text("other".to_owned())).unwrap_err();
    assert!(
        matches!(error, PackError::NotAnArchive { .. } | PackError::Openssl { .. }),
        "{error}"
    );
    assert!(!output.exists() && files(there.path()) == before);
    assert_eq!(fs::read_dir(there.path()).unwrap().count(), 2);
}

#[test]
fn a_damaged_package_is_noticed_before_it_is_opened() {
    let (there, output) = packed();
    let mut bytes = fs::read(there.path().join(TARBALL)).unwrap();
    bytes[40] ^= 1;
    put(&there.path().join(TARBALL), bytes);
    let error = unpack(there.path(), "ACME", &output, &secret()).unwrap_err();
    assert!(matches!(error, PackError::Checksum { .. }), "{error}");
    put(&there.path().join(SHA1), "nothing of the kind\n");
    let error = unpack(there.path(), "ACME", &output, &secret()).unwrap_err();
    assert!(matches!(error, PackError::ChecksumFile { .. }), "{error}");
    fs::remove_file(there.path().join(SHA1)).unwrap();
    let error = unpack(there.path(), "ACME", &output, &secret()).unwrap_err();
    assert!(matches!(error, PackError::File(_)), "{error}");
}

#[test]
fn a_cut_package_with_a_matching_checksum_does_not_open() {
    let (there, output) = packed();
    let bytes = fs::read(there.path().join(TARBALL)).unwrap();
    for length in [0, 10, 16, 32, bytes.len() - 16, bytes.len() - 1] {
        put(&there.path().join(TARBALL), &bytes[..length]);
        resum(there.path());
        let error = unpack(there.path(), "ACME", &output, &secret()).unwrap_err();
        assert!(
            matches!(error, PackError::NotAnArchive { .. } | PackError::Openssl { .. }),
            "{length}: {error}"
        );
        assert!(!output.exists());
    }
}

#[test]
fn pack_refuses_existing_packages() {
    let (there, output) = packed();
    put(&output.join("file"), "mine");
    let error = unpack(there.path(), "ACME", &output, &secret()).unwrap_err();
    assert!(matches!(error, PackError::Exists { .. }), "{error}");
}

#[test]
fn a_hostile_archive_gets_nowhere() {
    type Fill = fn(&mut tar::Builder<GzEncoder<Vec<u8>>>);
    let fills: [Fill; 4] = [
        |tar| raw(tar, b"closed/../../escaped", tar::EntryType::Regular, ""),
        |tar| raw(tar, b"/escaped-by-absolute-path", tar::EntryType::Regular, ""),
        |tar| raw(tar, b"elsewhere/file", tar::EntryType::Regular, ""),
        |tar| raw(tar, b"closed/link", tar::EntryType::Symlink, "/etc"),
    ];
    for fill in fills {
        let there = tempfile::tempdir().unwrap();
        let output = there.path().join("tree");
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        fill(&mut tar);
        let archive = tar.into_inner().unwrap().finish().unwrap();
        seal(there.path(), archive);
        let error = unpack(there.path(), "ACME", &output, &secret()).unwrap_err();
        assert!(matches!(error, PackError::Hostile { .. }), "{error}");
        assert!(!output.exists() && !there.path().join("escaped").exists());
    }
}

#[test]
fn an_archive_that_unpacks_to_a_full_disk_is_ended_early() {
    type Fill = fn(&mut tar::Builder<GzEncoder<Vec<u8>>>);
    let limits = UnpackLimits {
        bytes: 8 << 20,
        entries: 10,
    };
    let fills: [Fill; 4] = [
        // 64 MiB of zeros in one file, which gzip makes small.
        |tar| zeros(tar, "closed/zeros", 64 << 20),
        |tar| (0..10).for_each(|number| zeros(tar, &format!("closed/{number}"), 1 << 20)),
        |tar| (0..11).for_each(|number| zeros(tar, &format!("closed/{number}"), 0)),
        // A name that would be read into memory before it is checked.
        |tar| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::GNULongName);
            header.set_size(64 << 20);
            header.set_cksum();
            tar.append(&header, std::io::repeat(b'a').take(64 << 20)).unwrap();
            zeros(tar, "closed/file", 0);
        },
    ];
    for (number, fill) in fills.into_iter().enumerate() {
        let there = tempfile::tempdir().unwrap();
        let output = there.path().join("tree");
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        fill(&mut tar);
        seal(there.path(), tar.into_inner().unwrap().finish().unwrap());
        let unpacked =
            regatta_submission_stage::pack::unpack(there.path(), "ACME", &output, &secret(), limits);
        let error = unpacked.unwrap_err();
        assert!(matches!(error, PackError::TooLarge { .. }), "{number}: {error}");
        assert!(!output.exists());
    }
    // Zeros after the archive's end.
    let there = tempfile::tempdir().unwrap();
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    zeros(&mut tar, "closed/file", 0);
    let mut gzip = tar.into_inner().unwrap();
    std::io::copy(&mut std::io::repeat(0).take(64 << 20), &mut gzip).unwrap();
    seal(there.path(), gzip.finish().unwrap());
    let output = there.path().join("tree");
    let unpacked = regatta_submission_stage::pack::unpack(there.path(), "ACME", &output, &secret(), limits);
    assert!(matches!(unpacked, Err(PackError::TooLarge { .. })));
}

/// A file of zeros.
fn zeros(tar: &mut tar::Builder<GzEncoder<Vec<u8>>>, path: &str, bytes: u64) {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o644);
    tar.append_data(&mut header, path, std::io::repeat(0).take(bytes))
        .unwrap();
}

/// Encrypts an archive as a package, with its checksum.
fn seal(there: &Path, archive: Vec<u8>) {
    put(&there.join("plain"), archive);
    let status = Command::new("bash")
        .args([
            "-c",
            &format!("openssl enc -e -aes256 -in plain -out {TARBALL} -pass pass:secret 2>/dev/null"),
        ])
        .current_dir(there)
        .status()
        .unwrap();
    assert!(status.success());
    resum(there);
}

/// Adds an entry with a path that the library's own writer would refuse.
fn raw(tar: &mut tar::Builder<GzEncoder<Vec<u8>>>, path: &[u8], kind: tar::EntryType, link: &str) {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..path.len()].copy_from_slice(path);
    header.set_entry_type(kind);
    if !link.is_empty() {
        header.set_link_name(link).unwrap();
    }
    header.set_mode(0o644);
    header.set_size(0);
    header.set_cksum();
    tar.append(&header, std::io::empty()).unwrap();
}

fn resum(directory: &Path) {
    let status = Command::new("bash")
        .args(["-c", &format!("sha1sum {TARBALL} > {SHA1}")])
        .current_dir(directory)
        .status()
        .unwrap();
    assert!(status.success());
}
