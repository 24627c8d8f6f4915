//! `engine inspect`: describes an engine, whether it runs on this machine, and its layers as TensorRT reports them.

use std::path::PathBuf;

use regatta_engines::chip::this_chip;
use regatta_tensorrt::{BuildError, CacheEntry, Version};
use regatta_types::ExitCode;
use serde::Serialize;

use super::{installation::open, print};
use crate::{cli::EngineInspectArgs, exit::Failure};

#[derive(Serialize)]
struct Inspected<'a> {
    #[serde(flatten)]
    entry: &'a CacheEntry,
    /// The TensorRT version whose headers the shim was built with.
    shim: Version,
    /// Why the engine does not run on this machine.
    refusal: Option<String>,
    /// TensorRT's description of the layers.
    layers: Option<serde_json::Value>,
}

pub(super) fn inspect(args: &EngineInspectArgs) -> Result<ExitCode, Failure> {
    let place = place(args);
    let (entry, plan) = CacheEntry::read(&place)?;
    let tensorrt = open(args.tensorrt.as_deref(), &args.plugins)?;
    let core = entry.manifest.dla.map(|dla| dla.core);
    let described = match entry.manifest.check_compatible(tensorrt.version(), &this_chip()) {
        Err(refusal) => Err(refusal.to_string()),
        Ok(()) => tensorrt
            .load(&plan, core)
            .and_then(|engine| engine.inspect())
            .map_err(|error: BuildError| error.to_string()),
    };
    let inspected = Inspected {
        entry: &entry,
        shim: tensorrt.shim_version(),
        refusal: described.as_ref().err().cloned(),
        layers: described
            .as_ref()
            .ok()
            .and_then(|json| serde_json::from_str(json).ok()),
    };
    print::result(args.place.format, &inspected, |out| {
        print::entry(out, &place, &entry)?;
        writeln!(
            out,
            "  TensorRT      {} here, through the shim of {}",
            tensorrt.version(),
            tensorrt.shim_version()
        )?;
        match &described {
            Ok(json) => writeln!(out, "  runs here     yes\n{json}"),
            Err(reason) => writeln!(out, "  runs here     no: {reason}"),
        }
    })?;
    Ok(if described.is_ok() {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

/// Returns the engine's directory. If the argument is not a directory, it is a key of the cache.
fn place(args: &EngineInspectArgs) -> PathBuf {
    if args.engine.is_dir() {
        args.engine.clone()
    } else {
        args.place.cache.join(&args.engine)
    }
}
