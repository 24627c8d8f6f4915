//! The command that builds a missing engine, as a user types it and as the agent runs it. `EngineBuildArgs` parses it.

use std::{fmt, path::Path};

use regatta_engines::{MissingDlaEngine, MissingEngine, tensorrt::calibration::has_scales};
use regatta_tensorrt::Precision;

/// Shift between bytes and MiB, the unit of `--workspace`.
const MIB: u32 = 20;
/// Shift between bytes and KiB, the unit of `--dla-sram`.
const KIB: u32 = 10;

/// The arguments of `engine build`, without the program's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BuildCommand(Vec<String>);

impl BuildCommand {
    /// Returns the command that builds an engine into the cache in which it is missing.
    pub(crate) fn of(missing: &MissingEngine) -> Self {
        let mut command = Self(["engine", "build"].map(str::to_owned).to_vec());
        command.add_path("--onnx", &missing.onnx);
        command.add("--batch", missing.batch);
        if missing.profiles > 1 {
            command.add("--profiles", missing.profiles);
        }
        match missing.precision {
            Precision::AsInNetwork => {}
            Precision::Fp16 => command.add("--precision", "fp16"),
            Precision::Int8 => command.add("--precision", "int8"),
        }
        for shape in &missing.input_shapes {
            command.add("--input-shape", shape);
        }
        if let Some(element) = missing.input.element {
            command.add("--input-dtype", element);
        }
        if let Some(format) = missing.input.format {
            command.add("--input-format", format);
        }
        if let Some(scale) = &missing.input_scale {
            command.add("--input-scale", scale);
        }
        if let Some(bytes) = missing.workspace_bytes {
            command.add("--workspace", bytes >> MIB);
        }
        if let Some(level) = missing.optimization_level {
            command.add("--level", level);
        }
        if let Some(dla) = missing.dla {
            command.add_dla(dla);
        }
        for library in &missing.plugins {
            command.add_path("--plugins", library);
        }
        if let Some(path) = &missing.calibration {
            let flag = if has_scales(path) {
                "--calibration-cache"
            } else {
                "--calibration-samples"
            };
            command.add_path(flag, path);
            if let Some(method) = missing.calibration_method {
                command.add("--calibration-method", method.as_str());
            }
        }
        command.add_path("--cache", &missing.cache);
        command
    }

    /// Returns the command that also calibrates again.
    pub(crate) fn with_new_scales(mut self) -> Self {
        self.0.push("--force-calibration".to_owned());
        self
    }

    fn add_dla(&mut self, dla: MissingDlaEngine) {
        self.add("--dla-core", 0);
        if let Some(bytes) = dla.sram_bytes {
            self.add("--dla-sram", bytes >> KIB);
        }
        if !dla.gpu_fallback {
            self.0.push("--no-fallback".to_owned());
        }
    }

    fn add(&mut self, flag: &str, value: impl fmt::Display) {
        self.0.extend([flag.to_owned(), value.to_string()]);
    }

    fn add_path(&mut self, flag: &str, path: &Path) {
        self.add(flag, path.display());
    }

    /// Returns the arguments.
    pub(crate) fn words(&self) -> &[String] {
        &self.0
    }
}

/// Formats the command as the user types it.
impl fmt::Display for BuildCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "regatta-agent {}", self.0.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::Parser as _;
    use regatta_tensorrt::{CalibrationMethod, ElementType, InputShape, IoFormat};
    use regatta_types::layout::Layout;

    use super::*;
    use crate::cli::{Cli, Command, EngineCommand, EnginePrecision};

    /// An engine with everything that a run may need.
    fn missing() -> MissingEngine {
        let shape = |name: &str| InputShape {
            name: Some(name.to_owned()),
            dims: vec![384],
        };
        MissingEngine {
            onnx: PathBuf::from("scratch/bert.onnx"),
            cache: PathBuf::from("engines"),
            dla: Some(MissingDlaEngine {
                sram_bytes: Some(512 << KIB),
                gpu_fallback: false,
            }),
            optimization_level: Some(4),
            batch: 8,
            profiles: 2,
            precision: Precision::Int8,
            input_shapes: vec![shape("input_ids"), shape("input_mask")],
            input: IoFormat {
                element: Some(ElementType::Int8),
                format: Some(Layout::Chw4),
            },
            input_scale: "input_ids=0.5".parse().ok(),
            workspace_bytes: Some(64 << MIB),
            plugins: vec![PathBuf::from("plugins.so")],
            calibration: Some(PathBuf::from("calibration/bert.cache")),
            calibration_method: Some(CalibrationMethod::MinMax),
        }
    }

    #[test]
    fn the_command_line_parses_the_command_of_every_missing_engine() {
        let missing = missing();
        let command = BuildCommand::of(&missing);
        let words = ["regatta-agent"]
            .into_iter()
            .chain(command.words().iter().map(String::as_str));
        let parsed = Cli::try_parse_from(words).unwrap();
        let Command::Engine(EngineCommand::Build(args)) = parsed.command else {
            panic!("{command}");
        };
        assert_eq!(
            (&args.onnx, args.batch, args.profiles),
            (&missing.onnx, 8, missing.profiles as u32)
        );
        assert_eq!(
            (args.precision, args.workspace, args.dla_core),
            (EnginePrecision::Int8, Some(64), Some(0))
        );
        assert_eq!(
            (args.level, args.dla_sram, args.no_fallback),
            (Some(4), Some(512), true)
        );
        assert_eq!(
            (args.input_dtype, args.input_format),
            (missing.input.element, missing.input.format)
        );
        assert!(args.input_scale.is_some() && args.input_scale == missing.input_scale);
        assert_eq!(
            (&args.input_shapes, &args.plugins),
            (&missing.input_shapes, &missing.plugins)
        );
        assert_eq!(args.calibration_method, missing.calibration_method);
        assert_eq!(
            (&args.calibration_cache, &args.place.cache),
            (&missing.calibration, &missing.cache)
        );
    }

    #[test]
    fn what_is_usual_is_not_in_the_command() {
        let plain = MissingEngine {
            dla: None,
            optimization_level: None,
            profiles: 1,
            precision: Precision::AsInNetwork,
            input_shapes: Vec::new(),
            input: IoFormat::default(),
            input_scale: None,
            workspace_bytes: None,
            plugins: Vec::new(),
            calibration: Some(PathBuf::from("samples")),
            calibration_method: None,
            ..missing()
        };
        assert_eq!(
            BuildCommand::of(&plain).to_string(),
            "regatta-agent engine build --onnx scratch/bert.onnx --batch 8 --calibration-samples samples --cache engines"
        );
    }
}
