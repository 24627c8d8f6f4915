//! A PostgreSQL server in place of files, for tests, also of other packages (feature `fixtures`).

#![expect(clippy::unwrap_used, reason = "a fixture fails its test")]

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{DatabaseAddress, ServerAddress};

/// Returns an empty schema of the PostgreSQL database that `REGATTA_TEST_DATABASE` names, or `None` without this variable. With it, the
/// tests of the store run on PostgreSQL. The same file gets the same schema.
pub fn server_instead_of(path: &Path) -> Option<DatabaseAddress> {
    static IN_MEMORY: AtomicU64 = AtomicU64::new(0);
    let address = std::env::var("REGATTA_TEST_DATABASE").ok()?;
    let mut hasher = DefaultHasher::new();
    let directory = path.parent().and_then(|parent| parent.canonicalize().ok());
    directory.hash(&mut hasher);
    path.file_name().hash(&mut hasher);
    if path == Path::new(":memory:") {
        (std::process::id(), IN_MEMORY.fetch_add(1, Ordering::Relaxed)).hash(&mut hasher);
    }
    let schema = format!("test_{:016x}", hasher.finish());
    let mut client = postgres::Client::connect(&address, postgres::NoTls).unwrap();
    let create = format!("SET client_min_messages = error; CREATE SCHEMA IF NOT EXISTS {schema}");
    // Another connection may create it at the same moment.
    let _ = client.batch_execute(&create);
    let separator = if address.contains('?') { '&' } else { '?' };
    let address = format!("{address}{separator}options=-csearch_path%3D{schema}");
    let server = ServerAddress::new(&address, None).unwrap();
    Some(DatabaseAddress::Server(Box::new(server)))
}

/// Returns whether the databases of tests are schemas of a server. Tests of a behaviour that only SQLite has do nothing then.
pub fn is_on_server() -> bool {
    std::env::var_os("REGATTA_TEST_DATABASE").is_some()
}
