//! Finds the agent's packages: those that the user names, otherwise those that were installed with this program, built in a checkout, or copied into
//! the workspace. Builds a missing package if there is a checkout with a compiler, and otherwise names the command to do so.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
};

use regatta_ssh::last_lines;
use regatta_text::quote_for_shell_if_needed;

use crate::exit::Failure;
use regatta_deploy::{InstallMethod, NoPackageError, Package, PackageError, PackageSource, ProgressReporter};

/// The output directory of `./dist`.
const DIST_OUT: &str = "dist-out";
/// The directory of packages in a workspace.
const IN_WORKSPACE: &str = "packages";
/// The directory of packages beside an installed program, relative to the program's directory.
const INSTALLED: &str = "../share/regatta/packages";

/// The available packages, and the sources of further ones.
#[derive(Debug)]
pub(in crate::cli) struct PackagePlaces {
    packages: Mutex<Vec<Package>>,
    /// Locked while packages are built, on behalf of one board.
    building: Mutex<()>,
    is_named: bool,
    may_build: bool,
    workspace: PathBuf,
    checkout: Option<PathBuf>,
}

impl PackagePlaces {
    /// Reads the `named` files and directories, or the usual directories of packages if `named` is empty.
    ///
    /// # Errors
    /// Returns an error when a file is not a package.
    pub(in crate::cli) fn find(named: &[PathBuf], workspace: &Path) -> Result<Self, Failure> {
        let checkout = checkout();
        let mut packages = Vec::new();
        for path in named {
            packages.extend(at(path).map_err(Failure::usage)?);
        }
        if named.is_empty() {
            for place in usual_places(workspace, checkout.as_deref()) {
                packages.extend(at(&place)?);
            }
        }
        Ok(Self {
            packages: Mutex::new(packages),
            building: Mutex::new(()),
            is_named: !named.is_empty(),
            may_build: true,
            workspace: workspace.to_owned(),
            checkout,
        })
    }

    /// Disables building. The error for a missing package then contains the command that builds it.
    pub(in crate::cli) fn without_building(mut self) -> Self {
        self.may_build = false;
        self
    }

    pub(in crate::cli) fn missing(&self, architecture: &str) -> NoPackageError {
        self.missing_because(architecture, String::new())
    }

    fn missing_because(&self, architecture: &str, reason: String) -> NoPackageError {
        let hint = match &self.checkout {
            _ if self.is_named => {
                format!("name the .deb and the .tar.gz for {architecture} with --package, or leave it out")
            }
            Some(checkout) => {
                let script = quote_for_shell_if_needed(&checkout.join("dist").to_string_lossy()).into_owned();
                let out = quote_for_shell_if_needed(&checkout.join(DIST_OUT).to_string_lossy()).into_owned();
                format!("{script} --only agent-{architecture} --out {out}")
            }
            None => format!(
                "copy regatta-agent_{version}_{architecture}.deb and regatta-agent-{version}-{architecture}.tar.gz of the release to {}; a clone makes them with ./dist --only agent-{architecture}",
                self.workspace.join(IN_WORKSPACE).display(),
                version = env!("CARGO_PKG_VERSION"),
            ),
        };
        NoPackageError {
            architecture: architecture.to_owned(),
            reason,
            hint,
        }
    }

    /// Returns whether both packages for an architecture are available.
    fn has(&self, architecture: &str) -> bool {
        let packages = self.at_hand();
        [InstallMethod::System, InstallMethod::User].iter().all(|way| {
            packages
                .iter()
                .any(|package| package.way == *way && package.architecture == architecture)
        })
    }
}

impl PackageSource for PackagePlaces {
    fn at_hand(&self) -> Vec<Package> {
        self.packages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn make(
        &self,
        architecture: &str,
        progress: &dyn ProgressReporter,
    ) -> Result<Vec<Package>, NoPackageError> {
        let _building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        // The call of another board may have built them in the meantime.
        if self.has(architecture) {
            return Ok(self.at_hand());
        }
        let checkout = match &self.checkout {
            Some(checkout) if !self.is_named && self.may_build => checkout,
            _ => return Err(self.missing(architecture)),
        };
        progress.say(&format!(
            "there is no package for {architecture} yet: building one in {} (once, several minutes)",
            checkout.display()
        ));
        let because = |reason| self.missing_because(architecture, format!(": {reason}"));
        let out = checkout.join(DIST_OUT);
        let output = Command::new(checkout.join("dist"))
            .args(["--only", &format!("agent-{architecture}"), "--out"])
            .arg(&out)
            .output()
            .map_err(|error| because(error.to_string()))?;
        if !output.status.success() {
            let printed = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(because(last_lines(&printed)));
        }
        let made = at(&out).map_err(|error| because(error.to_string()))?;
        let mut packages = self.packages.lock().unwrap_or_else(PoisonError::into_inner);
        packages.extend(made);
        Ok(packages.clone())
    }
}

/// Returns the existing directories of packages, in order of preference.
fn usual_places(workspace: &Path, checkout: Option<&Path>) -> Vec<PathBuf> {
    let program = env::current_exe().ok();
    let places = [
        Some(PathBuf::from(DIST_OUT)),
        Some(workspace.join(IN_WORKSPACE)),
        program.and_then(|program| Some(program.parent()?.join(INSTALLED))),
        checkout.map(|checkout| checkout.join(DIST_OUT)),
    ];
    places
        .into_iter()
        .flatten()
        .filter(|place| place.is_dir())
        .collect()
}

/// Returns the checkout that contains this program or the working directory.
fn checkout() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let here = env::current_dir().ok()?;
    let is_checkout =
        |directory: &&Path| directory.join("dist").is_file() && directory.join("agent/Cargo.toml").is_file();
    let mut above = program.ancestors().chain(here.ancestors());
    above.find(is_checkout).map(Path::to_owned)
}

fn at(path: &Path) -> Result<Vec<Package>, PackageError> {
    if path.is_dir() {
        return Package::all_in(path);
    }
    Ok(vec![Package::open(path)?])
}
