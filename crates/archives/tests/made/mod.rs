//! Creates archives for tests: tar with its crate, and zip by hand, because the workspace has no writer for zip.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use flate2::{
    Compression, Crc,
    write::{DeflateEncoder, GzEncoder},
};
use tar::{EntryType, Header};

/// A directory with an archive, and the directory into which it is unpacked.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.0.path().join("into")
    }

    /// Writes the archive.
    pub(crate) fn archive(&self, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join("archive");
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// Names and contents of files, some of them in a directory.
pub(crate) fn images(count: usize) -> Vec<(String, Vec<u8>)> {
    let image = |number: usize| {
        let directory = ["", "val/"][number % 2];
        let content = (0..1000 + number * 37)
            .map(|byte| (byte * number) as u8)
            .collect();
        (format!("{directory}{number:08}.JPEG"), content)
    };
    (1..=count).map(image).collect()
}

pub(crate) fn tar_of(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = header(EntryType::Regular, content.len() as u64);
        tar.append_data(&mut header, name, content.as_slice()).unwrap();
    }
    tar.into_inner().unwrap()
}

/// A tar with a file `before`, and with an entry whose name the builder would refuse.
pub(crate) fn tar_with(name: &str, kind: EntryType) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_data(&mut header(EntryType::Regular, 1), "before", &b"1"[..])
        .unwrap();
    let mut header = header(kind, 0);
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    if matches!(kind, EntryType::Symlink | EntryType::Link) {
        header.set_link_name("/etc/passwd").unwrap();
    }
    header.set_cksum();
    tar.append(&header, &b""[..]).unwrap();
    tar.into_inner().unwrap()
}

fn header(kind: EntryType, bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(bytes);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A zip whose files are alternately stored and deflated.
pub(crate) fn zip_of(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let (mut zip, mut directory) = (Vec::new(), Vec::new());
    for (number, (name, content)) in files.iter().enumerate() {
        let method = [8_u16, 0][number % 2];
        let data = if method == 0 {
            content.clone()
        } else {
            deflated(content)
        };
        let mut crc = Crc::new();
        crc.update(content);
        let sizes = [crc.sum(), data.len() as u32, content.len() as u32];
        let mut common = [20_u16, 0, method, 0, 0].map(u16::to_le_bytes).concat();
        common.extend(sizes.map(u32::to_le_bytes).concat());
        common.extend([name.len() as u16, 0].map(u16::to_le_bytes).concat());
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0_u16; 3].map(u16::to_le_bytes).concat());
        directory.extend([0, zip.len() as u32].map(u32::to_le_bytes).concat());
        directory.extend(name.as_bytes());
        zip.extend(b"PK\x03\x04");
        zip.extend(&common);
        zip.extend(name.as_bytes());
        zip.extend(data);
    }
    let begin = zip.len() as u32;
    zip.extend(&directory);
    zip.extend(b"PK\x05\x06");
    let count = files.len() as u16;
    zip.extend([0, 0, count, count].map(u16::to_le_bytes).concat());
    zip.extend([directory.len() as u32, begin].map(u32::to_le_bytes).concat());
    zip.extend([0, 0]);
    zip
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}
