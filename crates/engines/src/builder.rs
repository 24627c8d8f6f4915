//! Builds of engines before a run. What a build is, the caller decides: the agent starts a process.

use std::error::Error;

use super::{EngineError, MissingEngine};

/// The most builds for one run: one for each kind of unit, or for each of three networks.
const MAX_BUILDS: usize = 3;

/// Builds an engine into its cache.
type Build<'a> = dyn FnMut(&MissingEngine) -> Result<(), Box<dyn Error + Send + Sync>> + 'a;

/// Builds the missing engines of a run, each of them once.
pub struct EngineBuilder<'a> {
    build: &'a mut Build<'a>,
    built: Vec<MissingEngine>,
}

impl<'a> EngineBuilder<'a> {
    /// Returns a builder that calls `build` for each engine.
    pub fn new(build: &'a mut Build<'a>) -> Self {
        Self {
            build,
            built: Vec::new(),
        }
    }

    /// Builds an engine. Returns `false` if it was built before, or if the run has used up its builds. In that case, building does not help the load.
    ///
    /// # Errors
    /// [`EngineError::Build`].
    pub(crate) fn build(&mut self, missing: &MissingEngine) -> Result<bool, EngineError> {
        if self.built.len() == MAX_BUILDS || self.built.contains(missing) {
            return Ok(false);
        }
        (self.build)(missing).map_err(EngineError::Build)?;
        self.built.push(missing.clone());
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use regatta_tensorrt::{IoFormat, Precision};

    use super::*;

    fn missing(batch: usize) -> MissingEngine {
        MissingEngine {
            onnx: PathBuf::from("model.onnx"),
            cache: PathBuf::from("engines"),
            dla: None,
            batch,
            profiles: 1,
            precision: Precision::AsInNetwork,
            input_shapes: Vec::new(),
            input: IoFormat::default(),
            input_scale: None,
            workspace_bytes: None,
            optimization_level: None,
            plugins: Vec::new(),
            calibration: None,
            calibration_method: None,
        }
    }

    #[test]
    fn each_engine_is_built_once_and_only_a_few() {
        let mut batches = Vec::new();
        let mut build = |missing: &MissingEngine| {
            batches.push(missing.batch);
            Ok(())
        };
        let mut builder = EngineBuilder::new(&mut build);
        let built = [1, 2, 1, 3, 4].map(|batch| builder.build(&missing(batch)).unwrap());
        assert_eq!(built, [true, true, false, true, false]);
        assert_eq!(batches, [1, 2, 3]);
    }

    #[test]
    fn a_failed_build_is_an_error_and_may_be_repeated() {
        let mut attempts = 0;
        let mut build = |_: &MissingEngine| {
            attempts += 1;
            if attempts == 1 {
                Err("no memory".into())
            } else {
                Ok(())
            }
        };
        let mut builder = EngineBuilder::new(&mut build);
        let failed = builder.build(&missing(1)).unwrap_err();
        assert_eq!(failed.to_string(), "no memory");
        assert!(builder.build(&missing(1)).unwrap());
    }
}
