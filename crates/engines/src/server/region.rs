//! A region of POSIX shared memory for the tensors of a stream. It has a name only until the server has opened it, so that it is not left
//! behind unless the agent is killed meanwhile.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::FallocateFlags;

use super::http::{Connection, HttpError};

/// Where the system shows POSIX shared memory as files.
const MEMORY: &str = "/dev/shm";

/// A registered region.
#[derive(Debug)]
pub(super) struct SharedRegion {
    pub(super) name: String,
    file: File,
}

/// Why there is no region.
#[derive(Debug, thiserror::Error)]
pub(super) enum RegionError {
    #[error("shared memory in {MEMORY} cannot be used")]
    Memory(#[from] io::Error),
    #[error("the server cannot open shared memory; hint: a driver without `shared_memory` needs none")]
    Refused(#[from] HttpError),
}

impl SharedRegion {
    /// Creates a region of `bytes` bytes and registers it on the server.
    pub(super) fn register(connection: &mut Connection, bytes: usize) -> Result<Self, RegionError> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // A killed process leaves its file, and in a container the next one may have its number.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("regatta-{}-{:x}-{number}", std::process::id(), now.as_nanos());
        let named = NamedFile(Path::new(MEMORY).join(&name));
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&named.0)?;
        // Memory that is only found missing when it is written would end the server with a signal.
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes as u64).map_err(io::Error::from)?;
        let document = format!("{{\"key\":\"/{name}\",\"offset\":0,\"byte_size\":{bytes}}}");
        let path = format!("/v2/systemsharedmemory/region/{name}/register");
        connection.post(&path, document.as_bytes(), &mut |_| {})?;
        Ok(Self { name, file })
    }

    /// Lets the server forget the region.
    pub(super) fn unregister(&self, connection: &mut Connection) {
        let path = format!("/v2/systemsharedmemory/region/{}/unregister", self.name);
        // A server that has ended has no regions.
        let _ = connection.post(&path, b"{}", &mut |_| {});
    }

    pub(super) fn write(&self, bytes: &[u8], offset: usize) -> io::Result<()> {
        self.file.write_all_at(bytes, offset as u64)
    }

    pub(super) fn read(&self, bytes: &mut [u8], offset: usize) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset as u64)
    }
}

/// A file that is removed when this is dropped.
struct NamedFile(PathBuf);

impl Drop for NamedFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
