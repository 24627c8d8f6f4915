//! Checks checksums: of the client's and server's source code, and of the session's files.

use std::collections::BTreeMap;

use regatta_fsutil::hash::hex;
use serde_json::{Map, Value};
use sha1::{Digest as _, Sha1};

use super::{
    check_failure::CheckFailure,
    ptd_log,
    session::{CheckResult, Session},
};
use crate::check::hashed::Hashed;

/// The files of a session that must have a checksum in one of the descriptions.
const FILES: [&str; 9] = [
    "power/client.log",
    "power/ptd_logs.txt",
    "power/server.log",
    "ranging/mlperf_log_detail.txt",
    "ranging/mlperf_log_summary.txt",
    "ranging/spl.txt",
    "run_1/mlperf_log_detail.txt",
    "run_1/mlperf_log_summary.txt",
    "run_1/spl.txt",
];

/// Checks that the source code is that of an accepted release.
pub(super) fn sources(session: &Session<'_>, description: &Map<String, Value>) -> CheckResult {
    let Some(Value::Object(sources)) = description.get("sources") else {
        return Err("sources is not an object".into());
    };
    let is = |release: &BTreeMap<String, String>| {
        release.len() == sources.len()
            && release
                .iter()
                .all(|(file, hash)| sources.get(file).and_then(Value::as_str) == Some(hash))
    };
    if session.rules.sources.iter().any(is) {
        return Ok(());
    }
    // The error lists the differences from the most similar release.
    let differing = |release: &BTreeMap<String, String>| {
        let same = |file: &String| {
            sources.get(file).and_then(Value::as_str) == release.get(file).map(String::as_str)
        };
        let mut files: Vec<_> = release
            .keys()
            .chain(sources.keys())
            .filter(|file| !same(file))
            .cloned()
            .collect();
        files.sort();
        files.dedup();
        files
    };
    let nearest = session.rules.sources.iter().map(differing).min_by_key(Vec::len);
    let files = nearest.unwrap_or_default().join(", ");
    Err(format!("the source code is that of no accepted release: {files} differ").into())
}

/// Checks that the files have the checksums that both sides recorded.
pub(super) fn check(session: &Session<'_>) -> CheckResult {
    let (client, server) = (hashes(&session.client)?, hashes(&session.server)?);
    for (file, hash) in &server {
        if client.get(file).is_some_and(|other| other != hash) {
            return Err(format!("client and server took different checksums of {file}").into());
        }
    }
    let mut recorded = client;
    recorded.extend(server);
    for name in FILES {
        match (recorded.get(name), sha1(session, name)?) {
            (Some(recorded), Some(found)) if *recorded == found => {}
            (Some(_), Some(_)) => return Err(format!("{name} is not the file that was hashed").into()),
            (Some(_), None) => return Err(format!("{name} is missing").into()),
            (None, _) => return Err(format!("neither side took a checksum of {name}").into()),
        }
    }
    Ok(())
}

/// Returns a description's checksums of the files in `FILES`.
fn hashes(description: &Map<String, Value>) -> Result<BTreeMap<String, String>, CheckFailure> {
    let Some(Value::Object(results)) = description.get("results") else {
        return Err("results is not an object".into());
    };
    let known = results.iter().filter(|(file, _)| FILES.contains(&file.as_str()));
    Ok(known
        .map(|(file, hash)| (file.clone(), hash.as_str().unwrap_or_default().to_owned()))
        .collect())
}

/// Returns the SHA-1 of a file of the session, or `None` if the file does not exist.
fn sha1(session: &Session<'_>, name: &str) -> Result<Option<String>, CheckFailure> {
    let path = session.at(name);
    if !session.tree.exists(&path) {
        return Ok(None);
    }
    if name == ptd_log::FILE
        && let Ok(log) = session.ptd_log()
        && let Some(contents) = log.contents()
    {
        return Ok(Some(hex(&Sha1::digest(contents))));
    }
    if let Some(known) = session.known_sha1(name) {
        return Ok(Some(known));
    }
    let whole = Hashed::open(session.tree, &path).and_then(Hashed::sha1);
    whole
        .map(Some)
        .map_err(|error| format!("{name} cannot be read: {error}").into())
}
