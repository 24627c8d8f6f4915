//! `engine remove`: removes engines from a cache. This does not need TensorRT. Runs rebuild the engines that they need.

use std::io::{self, Write as _};

use regatta_tensorrt::EngineCache;
use regatta_text::EscapedText;
use regatta_types::ExitCode;

use crate::{cli::EngineRemoveArgs, exit::Failure};

pub(super) fn remove(args: &EngineRemoveArgs) -> Result<ExitCode, Failure> {
    let cache = EngineCache::new(args.cache.clone());
    let keys = if args.all {
        cache.keys()?
    } else {
        args.engines.clone()
    };
    cache.remove(&keys)?;
    for key in keys {
        // Standard output may be closed.
        let _ = writeln!(EscapedText(io::stdout()), "removed {key}");
    }
    Ok(ExitCode::Success)
}
