//! 3D-UNet's shipped benchmark with other cases and smaller windows, prepared for the tests of volumes. It has no tests.

use std::path::Path;

use regatta_prep::{ImageRequest, PrepError, PrepReport, prepare_images};
use regatta_types::{
    benchmark::{Benchmark, Dtype, Prep},
    layout::Layout,
    samples::Form,
};

/// Returns the shipped benchmark with these cases and windows of `side` voxels.
pub(crate) fn benchmark(cases: &[&str], side: usize) -> Benchmark {
    let text = include_str!("../../../../configs/benchmarks/3d-unet-99.toml");
    let mut benchmark = Benchmark::from_toml(text).unwrap();
    benchmark.model.input_shape = vec![1, side, side, side];
    benchmark.model.windows.as_mut().unwrap().stride = [side / 2; 3];
    benchmark.dataset.total_samples = cases.len();
    let Some(Prep::Volumes(kind)) = &mut benchmark.prep else {
        unreachable!("the file has volumes");
    };
    kind.cases = cases.iter().map(|&case| case.to_owned()).collect();
    benchmark
}

/// Returns the request for the samples of a directory.
pub(crate) fn request<'a>(benchmark: &'a Benchmark, dtype: Dtype, data: &'a Path) -> ImageRequest<'a> {
    ImageRequest {
        benchmark,
        form: Form::new(dtype, Layout::Linear),
        quantised: None,
        data,
        labels: None,
        calibration: None,
        accepts_damaged: false,
    }
}

/// Makes the samples of a directory.
pub(crate) fn prepared(
    benchmark: &Benchmark,
    dtype: Dtype,
    data: &Path,
    out: &Path,
) -> Result<PrepReport, PrepError> {
    prepare_images(&request(benchmark, dtype, data), out, &mut |_, _| {})
}
