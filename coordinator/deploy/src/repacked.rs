//! Adds a library to a package. Installation, upgrade and rollback then treat it like the package's other libraries.

use std::{
    fs, io,
    io::{Read as _, Write as _},
    path::Path,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use regatta_fsutil::{atomic_file::AtomicFile, hash::sha256_hex};

use super::{contents, install_method::InstallMethod, package::Package};

/// Writes the package with the library into `directory`, unless it exists already. Returns the new package.
///
/// # Errors
/// Returns an error when a file cannot be read or written.
pub(crate) fn with_library(package: &Package, library: &Path, directory: &Path) -> io::Result<Package> {
    let bytes = fs::read(library)?;
    let short = |hash: &str| hash.chars().take(12).collect::<String>();
    let library_hash = sha256_hex(&bytes);
    let extension = match package.way {
        InstallMethod::System => "deb",
        InstallMethod::User => "tar.gz",
    };
    let name = format!("{}-{}.{extension}", short(&package.sha256), short(&library_hash));
    let path = directory.join(name);
    if !path.exists() {
        let file_name = library.file_name().unwrap_or_default().to_string_lossy();
        let packed = match package.way {
            InstallMethod::System => debian(&package.path, &file_name, &bytes)?,
            InstallMethod::User => archive(package, &file_name, &bytes)?,
        };
        fs::create_dir_all(directory)?;
        AtomicFile::new(&path).write(&packed)?;
    }
    Package::open(&path).map_err(io::Error::other)
}

fn debian(path: &Path, name: &str, library: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = b"!<arch>\n".to_vec();
    for (member, mut body) in contents::ar_members(path)? {
        if member == "data.tar.gz" {
            body = extended(
                &body,
                &[
                    ("./usr/lib/", None),
                    ("./usr/lib/regatta/", None),
                    (&format!("./usr/lib/regatta/{name}"), Some(library)),
                ],
            )?;
        }
        let size = body.len();
        packed.extend(
            format!(
                "{member:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n",
                0, 0, 0, "100644"
            )
            .bytes(),
        );
        packed.extend(body);
        if size % 2 == 1 {
            packed.push(b'\n');
        }
    }
    Ok(packed)
}

fn archive(package: &Package, name: &str, library: &[u8]) -> io::Result<Vec<u8>> {
    let top = format!("regatta-agent-{}-{}", package.version, package.architecture);
    let path = format!("{top}/bin/{name}");
    extended(&fs::read(&package.path)?, &[(&path, Some(library))])
}

/// Appends directories and files to a gzip-compressed tar, and returns the result. When a name occurs twice, the later entry replaces the earlier one
/// during unpacking.
fn extended(compressed: &[u8], more: &[(&str, Option<&[u8]>)]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(compressed).read_to_end(&mut bytes)?;
    let mut end = 0;
    for entry in tar::Archive::new(bytes.as_slice()).entries()? {
        let entry = entry?;
        end = entry.raw_file_position() + entry.size().next_multiple_of(512);
    }
    // Without the blocks that mark the end.
    bytes.truncate(usize::try_from(end).unwrap_or(usize::MAX));
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    archive.get_mut().write_all(&bytes)?;
    for (path, content) in more {
        let mut header = tar::Header::new_gnu();
        header.set_mode(if content.is_some() { 0o644 } else { 0o755 });
        header.set_entry_type(if content.is_some() {
            tar::EntryType::Regular
        } else {
            tar::EntryType::Directory
        });
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        let content = content.unwrap_or_default();
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, path, content)?;
    }
    archive.into_inner()?.finish()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::package::tests::packages;

    #[test]
    fn both_packages_get_the_library_and_stay_readable_by_their_own_tools() {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("libregatta_trt-10.3.0.so");
        fs::write(&library, "a shim").unwrap();
        for package in packages(dir.path(), "0.1.0") {
            let made = with_library(&package, &library, &dir.path().join("made")).unwrap();
            let more: Vec<_> = made
                .files
                .iter()
                .filter(|file| !package.files.contains(file))
                .collect();
            assert_eq!(more.len(), 1, "{more:?}");
            assert!(more[0].0.ends_with("libregatta_trt-10.3.0.so"), "{more:?}");
            assert_eq!(made.shims().len(), 1);
            assert_eq!(
                (&made.version, &made.architecture),
                (&package.version, &package.architecture)
            );
            let unpacked = dir.path().join("unpacked");
            fs::create_dir_all(&unpacked).unwrap();
            let mut command = match package.way {
                InstallMethod::System => Command::new("dpkg-deb"),
                InstallMethod::User => Command::new("tar"),
            };
            match package.way {
                InstallMethod::System => command.arg("-x").arg(&made.path).arg(&unpacked),
                InstallMethod::User => command.arg("-xzf").arg(&made.path).arg("-C").arg(&unpacked),
            };
            assert!(command.status().unwrap().success());
            let place = match package.way {
                InstallMethod::System => "usr/lib/regatta/libregatta_trt-10.3.0.so",
                InstallMethod::User => "regatta-agent-0.1.0-arm64/bin/libregatta_trt-10.3.0.so",
            };
            assert_eq!(fs::read_to_string(unpacked.join(place)).unwrap(), "a shim");
            let again = with_library(&package, &library, &dir.path().join("again")).unwrap();
            assert_eq!(again.sha256, made.sha256, "the same bytes");
        }
    }
}
