//! Examines a board before anything changes on it: surveys it, selects the install method and the package with the right TensorRT shim, and notes
//! missing parts.

use regatta_ssh::Board;
use regatta_tensorrt::Version;

use super::{
    ProgressReporter, compatibility,
    error::DeployError,
    install_method::InstallMethod,
    package::Package,
    package_source::PackageSource,
    shim::{ShimCache, ShimError},
    survey::Survey,
    tensorrt_headers::HeadersError,
};

/// A board with less free space than this, in KiB, soon runs out of space: the models and samples of most benchmarks take several GiB.
const LITTLE_SPACE_KIB: u64 = 8 << 20;

pub(crate) struct Examination {
    /// The survey, with the hashes of the package's files.
    pub(crate) survey: Survey,
    /// The package to install.
    pub(crate) package: Package,
    /// Sentences about missing parts of the board, each with the remedy.
    pub(crate) notes: Vec<String>,
}

/// Examines one board.
pub(crate) struct Examiner<'a> {
    pub(crate) board: &'a dyn Board,
    pub(crate) packages: &'a dyn PackageSource,
    /// The TensorRT shims of the workspace.
    pub(crate) shims: &'a ShimCache,
    pub(crate) progress: &'a dyn ProgressReporter,
    /// Whether to compile nothing.
    pub(crate) dry_run: bool,
}

impl Examiner<'_> {
    /// Surveys the board, and selects the install method and the package. Builds the package or the shim if it is missing.
    pub(crate) fn examine(&self, requested: Option<InstallMethod>) -> Result<Examination, DeployError> {
        let survey = Survey::of(self.board, None)?;
        self.progress.say(&survey.sentence());
        let way = compatibility::way(&survey, requested)?;
        if way == InstallMethod::User && requested.is_none() && survey.is_usr_read_only {
            self.progress
                .say("/usr is read-only on this board: for this user alone, then");
        }
        compatibility::check_glibc(&survey)?;
        let mut notes = Vec::new();
        let package = self.package(&survey, way)?;
        let package = self.with_shim(&survey, package, &mut notes)?;
        let survey = Survey::of(self.board, Some(&package))?;
        if !compatibility::is_installed(&survey, &package) {
            compatibility::check_space(&survey, &package)?;
        }
        notes.extend(little_space(&survey, way));
        Ok(Examination {
            survey,
            package,
            notes,
        })
    }

    /// Returns the package for the board, and builds it if it is missing.
    fn package(&self, survey: &Survey, way: InstallMethod) -> Result<Package, DeployError> {
        let mut packages = self.packages.at_hand();
        let architecture = survey.architecture();
        let is_missing = compatibility::package(survey, way, &packages).is_err();
        if is_missing && matches!(architecture, "arm64" | "amd64") {
            packages = self.packages.make(architecture, self.progress)?;
        }
        Ok(compatibility::package(survey, way, &packages)?.clone())
    }

    /// Returns the package. Adds a shim if none of the package's shims supports the board's TensorRT.
    fn with_shim(
        &self,
        survey: &Survey,
        package: Package,
        notes: &mut Vec<String>,
    ) -> Result<Package, DeployError> {
        let Some(tensorrt) = survey.tensorrt else {
            notes.extend(survey.l4t.as_ref().map(|_| {
                "this Jetson has no TensorRT, so runs on its GPU and DLA are not possible; on the board: sudo apt-get install nvidia-jetpack".to_owned()
            }));
            return Ok(package);
        };
        if package.shims().iter().any(|shim| shim.shim_supports(&tensorrt)) {
            return Ok(package);
        }
        let kept = self.shims.find(survey.architecture(), tensorrt);
        let shim = match kept {
            Some(shim) => Ok(shim),
            None if self.dry_run => {
                notes.push(planned(survey, tensorrt));
                return Ok(package);
            }
            None => self
                .shims
                .find_or_compile(self.board, survey, tensorrt, self.progress),
        };
        match shim {
            Ok(shim) => self.shims.packed(&package, &shim).map_err(DeployError::Repack),
            Err(ShimError::Headers(HeadersError::Link(lost))) => Err(lost.into()),
            Err(error) => {
                notes.push(format!(
                    "deploying without TensorRT {tensorrt}: {}; {}, then deploy again",
                    regatta_text::ErrorChain(&error),
                    error.remedy(survey)
                ));
                Ok(package)
            }
        }
    }
}

/// Describes how a missing shim would be obtained, for a dry run.
fn planned(survey: &Survey, tensorrt: Version) -> String {
    match &survey.tensorrt_headers {
        Some(place) => {
            format!(
                "the shim for TensorRT {tensorrt} would be compiled first, with the headers in {place} of the board"
            )
        }
        None => {
            let error = ShimError::NoHeaders(tensorrt);
            format!("{error}; {}", error.remedy(survey))
        }
    }
}

/// Returns a sentence about too little free space for models and samples.
fn little_space(survey: &Survey, way: InstallMethod) -> Option<String> {
    let (place, free_kib) = match way {
        InstallMethod::System => ("/var/lib", survey.free_state_kib),
        InstallMethod::User => (survey.home.as_str(), survey.free_home_kib),
    };
    let tenths = free_kib * 10 / (1 << 20);
    (free_kib < LITTLE_SPACE_KIB).then(|| {
        format!(
            "the disk of {place} has {}.{} GiB free, too little for the samples of most benchmarks; `scratch` in agent.toml names a directory on another disk",
            tenths / 10,
            tenths % 10
        )
    })
}
