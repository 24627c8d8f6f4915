//! `engine list`: lists the engines of a cache. It does not need TensorRT.

use regatta_tensorrt::{CacheEntry, EngineCache};
use regatta_types::ExitCode;
use serde::Serialize;

use super::print;
use crate::{cli::EngineListArgs, exit::Failure};

#[derive(Serialize)]
struct Line {
    engine: String,
    #[serde(flatten)]
    entry: Option<CacheEntry>,
    error: Option<String>,
}

pub(super) fn list(args: &EngineListArgs) -> Result<ExitCode, Failure> {
    let listed = EngineCache::new(args.place.cache.clone()).list()?;
    let lines: Vec<Line> = listed
        .into_iter()
        .map(|(place, entry)| Line {
            engine: place
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            error: entry.as_ref().err().map(ToString::to_string),
            entry: entry.ok(),
        })
        .collect();
    print::result(args.place.format, &lines, |out| {
        if lines.is_empty() {
            return writeln!(out, "no engines in {}", args.place.cache.display());
        }
        writeln!(
            out,
            "{:<16}  {:>5}  {:<13}  {:<10}  {:>9}  chip",
            "engine", "batch", "types", "TensorRT", "KiB"
        )?;
        for line in &lines {
            match &line.entry {
                None => writeln!(
                    out,
                    "{:<16}  {}",
                    line.engine,
                    line.error.as_deref().unwrap_or_default()
                )?,
                Some(CacheEntry {
                    manifest, plan_bytes, ..
                }) => writeln!(
                    out,
                    "{:<16}  {:>5}  {:<13}  {:<10}  {:>9}  {}",
                    line.engine,
                    manifest.batch,
                    print::types(manifest.precision),
                    manifest.tensorrt.to_string(),
                    plan_bytes / 1024,
                    manifest.chip
                )?,
            }
        }
        Ok(())
    })?;
    Ok(ExitCode::Success)
}
