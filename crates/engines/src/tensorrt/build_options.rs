//! The options of a build that settings name, and whether an engine was built with them.

use std::path::Path;

use regatta_tensorrt::{CalibrationMethod, DlaSettings, EngineManifest};
use regatta_types::engine_settings::{CalibrationMethod as RequestedMethod, EngineSettings, InnerPath};

use super::{calibration::has_scales, workspace::bounded_workspace};
use crate::MissingDlaEngine;

/// Shift between bytes and MiB, the unit of `engine build` for workspaces.
const MIB: u32 = 20;
/// Shift between bytes and KiB, the unit of `engine build` for DLA's SRAM.
const KIB: u32 = 10;

/// Options with which engines must have been built. `None` accepts any, and leaves the option of a new engine to `engine build`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildOptions {
    /// The workspace in bytes, limited to what this machine allows, and compared in MiB.
    pub workspace_bytes: Option<u64>,
    /// TensorRT's level of optimisation.
    pub optimization_level: Option<u8>,
    /// The managed SRAM in bytes of each DLA core, compared in KiB.
    pub dla_sram_bytes: Option<u64>,
    /// Whether the GPU computes the layers that DLA cannot.
    pub dla_gpu_fallback: Option<bool>,
    /// How scales were found, of engines that were calibrated.
    pub calibration_method: Option<CalibrationMethod>,
}

/// A setting, and whether an engine was built as it requests.
type Check = (&'static str, fn(&BuildOptions, &EngineManifest) -> bool);

/// All settings of a build.
const CHECKS: &[Check] = &[
    ("workspace_size", |requested, built| {
        let in_mib = |bytes: u64| bytes >> MIB;
        is_as_requested(
            requested.workspace_bytes.map(bounded_workspace).map(in_mib),
            in_mib(built.workspace_bytes),
        )
    }),
    ("builder_optimization_level", |requested, built| {
        is_as_requested(
            requested.optimization_level.map(u32::from).map(Some),
            built.optimization_level,
        )
    }),
    ("dla_sram_size", |requested, built| {
        let in_kib = |bytes: u64| bytes >> KIB;
        is_of_dla(built, |dla| {
            is_as_requested(requested.dla_sram_bytes.map(in_kib), in_kib(dla.sram_bytes))
        })
    }),
    ("dla_gpu_fallback", |requested, built| {
        is_of_dla(built, |dla| {
            is_as_requested(requested.dla_gpu_fallback, dla.gpu_fallback)
        })
    }),
    ("calibration_method", |requested, built| {
        let is_calibrated = built.calibration_sha256.is_some();
        !is_calibrated || is_as_requested(requested.calibration_method, built.calibration_method)
    }),
];

impl BuildOptions {
    /// Returns the options that the settings name.
    pub(super) fn new(settings: &EngineSettings) -> Self {
        // Scales in a file keep the method that made them.
        let has_scales = settings
            .calibration
            .as_ref()
            .is_some_and(|InnerPath(path)| has_scales(Path::new(path)));
        let method = settings.calibration_method.filter(|_| !has_scales);
        Self {
            workspace_bytes: settings.workspace_size,
            optimization_level: settings.builder_optimization_level,
            dla_sram_bytes: settings.dla_sram_size,
            dla_gpu_fallback: settings.dla_gpu_fallback,
            calibration_method: method.map(|method| match method {
                RequestedMethod::Entropy => CalibrationMethod::Entropy,
                RequestedMethod::MinMax => CalibrationMethod::MinMax,
            }),
        }
    }

    /// Returns each setting with whether an engine was built as it requests.
    pub(super) fn checks(&self) -> impl Iterator<Item = (&'static str, impl Fn(&EngineManifest) -> bool)> {
        CHECKS
            .iter()
            .map(move |&(setting, check)| (setting, move |built: &EngineManifest| check(self, built)))
    }

    /// Returns how a missing engine for DLA cores is built.
    pub(super) fn of_dla(&self) -> MissingDlaEngine {
        MissingDlaEngine {
            sram_bytes: self.dla_sram_bytes,
            gpu_fallback: self.dla_gpu_fallback.unwrap_or(true),
        }
    }
}

fn is_as_requested<T: PartialEq>(requested: Option<T>, built: T) -> bool {
    requested.is_none_or(|requested| requested == built)
}

/// Checks an engine for DLA. Options of DLA do not concern others.
fn is_of_dla(built: &EngineManifest, check: impl FnOnce(DlaSettings) -> bool) -> bool {
    built.dla.is_none_or(check)
}
