//! An archive file: its kind, detected from its first bytes, and its entries.

use std::{
    fs::File,
    io::{BufReader, Read as _, Seek as _},
    path::{Path, PathBuf},
};

use flate2::bufread::MultiGzDecoder;
use regatta_fsutil::regular_file;

use crate::{
    entry::{Entry, Visit},
    error::ArchiveError,
    tar_archive::{self, BLOCK},
    zip_archive,
};

/// The size of the read buffer in bytes.
const BUFFER: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveKind {
    /// An uncompressed tar.
    Tar,
    /// A tar compressed with gzip.
    TarGz,
    /// A zip.
    Zip,
}

/// An archive file.
#[derive(Debug, Clone)]
pub struct Archive {
    path: PathBuf,
    kind: ArchiveKind,
    bytes: u64,
}

impl Archive {
    /// Opens a file and detects its kind.
    ///
    /// # Errors
    /// Returns [`ArchiveError::Kind`] if the file is not an archive, and an error if it cannot be read.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let read = ArchiveError::read(path);
        let file = regular_file::open(path).map_err(&read)?;
        let bytes = file.metadata().map_err(&read)?.len();
        let mut head = Vec::new();
        file.take(BLOCK).read_to_end(&mut head).map_err(&read)?;
        let kind = match head.as_slice() {
            [0x1f, 0x8b, ..] => ArchiveKind::TarGz,
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => ArchiveKind::Zip,
            head if tar_archive::is_header(head) => ArchiveKind::Tar,
            _ => return Err(ArchiveError::Kind(path.to_owned())),
        };
        Ok(Self {
            path: path.to_owned(),
            kind,
            bytes,
        })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the kind of the archive.
    #[must_use]
    pub const fn kind(&self) -> ArchiveKind {
        self.kind
    }

    /// Returns the size of the file in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Lists the files without reading their content, and checks that the archive is complete. Returns `None` for a compressed tar, because its list
    /// of files requires decompressing all of it.
    ///
    /// # Errors
    /// Returns an error if the archive is incomplete or damaged, or has an entry that is never unpacked.
    pub fn entries(&self) -> Result<Option<Vec<Entry>>, ArchiveError> {
        let file = self.file()?;
        match self.kind {
            ArchiveKind::Tar => tar_archive::list(file, self.bytes, &self.path).map(Some),
            ArchiveKind::TarGz => Ok(None),
            ArchiveKind::Zip => zip_archive::list(file, &self.path).map(Some),
        }
    }

    /// Passes each file with its content to `visit`, in the order of the archive.
    pub(crate) fn visit(&self, visit: &mut Visit<'_>) -> Result<(), ArchiveError> {
        let file = self.file()?;
        match self.kind {
            ArchiveKind::Tar => tar_archive::visit_seekable(file, self.bytes, &self.path, visit),
            ArchiveKind::TarGz => {
                let stream = MultiGzDecoder::new(BufReader::with_capacity(BUFFER, file));
                tar_archive::visit_stream(stream, &self.path, visit)
            }
            ArchiveKind::Zip => zip_archive::visit(file, &self.path, visit),
        }
    }

    fn file(&self) -> Result<File, ArchiveError> {
        let mut file = regular_file::open(&self.path).map_err(ArchiveError::read(&self.path))?;
        file.rewind().map_err(ArchiveError::read(&self.path))?;
        Ok(file)
    }
}
