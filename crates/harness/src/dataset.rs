//! The dataset of a run, opened before its engine is loaded: samples, the model's file, and what the engine needs to know about samples.

use std::{path::PathBuf, sync::Arc};

use super::{
    fault::FirstFault,
    library::{Library, image_sizes},
    request::HarnessRequest,
    set_up_error::SetUpError,
};

/// An opened dataset.
pub(crate) struct Dataset {
    /// The samples, with the lengths of sequences.
    pub(crate) library: Library,
    /// The model's file. Empty if the engine does not read it.
    pub(crate) model_file: PathBuf,
    /// Width and height of each sample's original image, when detections are fractions of them; else empty.
    pub(crate) image_sizes: Arc<[[u32; 2]]>,
    /// The first error of the run.
    pub(crate) fault: FirstFault,
}

impl Dataset {
    /// Opens the dataset of a run. For engines that do not read samples, it is only counted.
    ///
    /// # Errors
    /// [`SetUpError::NoScratch`] and [`SetUpError::Library`].
    pub(crate) fn open(request: &HarnessRequest<'_>) -> Result<Self, SetUpError> {
        let (benchmark, fault) = (request.benchmark, FirstFault::default());
        if !request.engine.computes() {
            return Ok(Self {
                library: Library::counted(benchmark, fault.clone()),
                model_file: PathBuf::new(),
                image_sizes: Arc::default(),
                fault,
            });
        }
        let scratch = request.scratch.ok_or(SetUpError::NoScratch(request.engine))?;
        let mut library = Library::open(benchmark, scratch, fault.clone())?;
        let image_sizes = image_sizes(benchmark, scratch)?;
        library.cut_sequences(benchmark, request.settings.sequence_lengths.as_ref())?;
        Ok(Self {
            library,
            model_file: scratch.join(&benchmark.model.file),
            image_sizes,
            fault,
        })
    }
}
