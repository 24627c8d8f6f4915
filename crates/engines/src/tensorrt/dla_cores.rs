//! The DLA cores of a request, limited to those that TensorRT finds. TensorRT drives no DLA in several versions, among them that of JetPack 7.2
//! for Orin: the GPU then computes alone.

use regatta_tensorrt::TensorRt;

use super::request::TensorRtRequest;
use crate::EngineError;

/// The settings exclude every unit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no_gpu excludes the GPU, and max_dlas=0 the DLA cores; hint: leave out one of them")]
struct NoUnit;

/// Removes the cores that TensorRT does not find. Without any, the GPU computes alone if it takes part.
///
/// # Errors
/// [`EngineError::Unavailable`] when TensorRT cannot be opened, or when no unit is left.
pub(super) fn limit(request: &mut TensorRtRequest) -> Result<(), EngineError> {
    let is_alone = request.gpu.streams == 0;
    let Some(&first) = request.dla_cores.first() else {
        return if is_alone {
            Err(EngineError::tensorrt_unavailable(NoUnit))
        } else {
            Ok(())
        };
    };
    let tensorrt = request.installation.tensorrt()?;
    let found = cores(&tensorrt);
    request.dla_cores.retain(|&core| core < found);
    if !request.dla_cores.is_empty() {
        return Ok(());
    }
    if is_alone {
        return tensorrt
            .check_dla(first)
            .map_err(EngineError::tensorrt_unavailable);
    }
    let version = tensorrt.version();
    let reason = format!(
        "TensorRT {version} finds no DLA core here: {}",
        version.dla_support()
    );
    tracing::warn!("the GPU computes without DLA, which the settings request: {reason}");
    request.unused_dla = Some(reason);
    Ok(())
}

/// Returns the number of cores. Of a lean runtime, which has no builder, only the version is read.
fn cores(tensorrt: &TensorRt) -> u32 {
    let by_version = if tensorrt.version().drives_dla() {
        u32::MAX
    } else {
        0
    };
    tensorrt.dla_cores().unwrap_or(by_version)
}
