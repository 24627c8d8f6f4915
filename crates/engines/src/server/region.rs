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

use super::{
    http::{Connection, HttpError},
    process_facts::ProcessId,
};

/// Where the system shows POSIX shared memory as files.
const MEMORY: &str = "/dev/shm";
/// The beginning of the names of regions. The namespace of process ids and the id of the process follow.
const PREFIX: &str = "regatta-";

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
        let name = format!(
            "{PREFIX}{}-{}-{:x}-{number}",
            process_namespace(),
            std::process::id(),
            now.as_nanos()
        );
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
        unregister(&self.name, connection);
    }

    pub(super) fn write(&self, bytes: &[u8], offset: usize) -> io::Result<()> {
        self.file.write_all_at(bytes, offset as u64)
    }

    pub(super) fn read(&self, bytes: &mut [u8], offset: usize) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset as u64)
    }
}

fn unregister(name: &str, connection: &mut Connection) {
    let path = format!("/v2/systemsharedmemory/region/{name}/unregister");
    // A server that has ended has no regions.
    let _ = connection.post(&path, b"{}", &mut |_| {});
}

/// Lets a server that goes on between runs forget the regions of runs that were killed.
pub(super) fn unregister_stale(connection: &mut Connection) {
    // A server that does not list its regions keeps them.
    let Ok(document) = connection.get_document("/v2/systemsharedmemory/status") else {
        return;
    };
    let regions: Vec<serde_json::Value> = serde_json::from_slice(&document).unwrap_or_default();
    let names = regions.iter().filter_map(|region| region.get("name")?.as_str());
    for name in names.filter(|name| is_stale(name)) {
        tracing::info!("the server forgets the shared memory {name} of a run that has ended");
        unregister(name, connection);
    }
}

/// Returns whether a region is one of a process that has ended. Of processes in other containers, it is not known.
fn is_stale(name: &str) -> bool {
    let process = || {
        let (namespace, rest) = name.strip_prefix(PREFIX)?.split_once('-')?;
        let (pid, rest) = rest.split_once('-')?;
        let is_own = rest.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        (is_own && namespace == process_namespace()).then(|| pid.parse().ok())?
    };
    process().is_some_and(|pid| ProcessId::running(pid).is_none())
}

/// Returns the number of this process's namespace of process ids.
fn process_namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits = link.to_string_lossy();
    digits.chars().filter(char::is_ascii_digit).collect()
}

/// A file that is removed when this is dropped.
struct NamedFile(PathBuf);

impl Drop for NamedFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{self, Command};

    use super::*;

    #[test]
    fn only_regions_of_processes_that_have_ended_are_stale() {
        let mut ended = Command::new("true").spawn().unwrap();
        let pid = ended.id();
        ended.wait().unwrap();
        let namespace = process_namespace();
        assert!(!namespace.is_empty());
        let name = |namespace: &str, pid: u32| format!("{PREFIX}{namespace}-{pid}-18f0a-0");
        assert!(is_stale(&name(&namespace, pid)));
        assert!(!is_stale(&name(&namespace, process::id())));
        assert!(!is_stale(&name("1", pid)));
        for other in [
            "regatta-",
            "regatta-1-2",
            "weights",
            &format!("{}/../x", name(&namespace, pid)),
        ] {
            assert!(!is_stale(other), "{other}");
        }
    }
}
