//! Finds the packages: the named ones, otherwise those in the output directory of `packaging/package.sh`.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::exit::Failure;
use regatta_deploy::{Package, PackageError};

/// The usual name of the directory (docs/headless.md).
const DIST: &str = "dist";

/// Reads the packages: the `named` files and directories, otherwise a `dist` in the current directory, in the workspace or beside this
/// program.
///
/// # Errors
/// Returns an error when a file is not a package, or when there is no package.
pub(in crate::cli) fn find(named: &[PathBuf], workspace: &Path) -> Result<Vec<Package>, Failure> {
    let mut packages = Vec::new();
    for path in named {
        packages.extend(at(path).map_err(Failure::usage)?);
    }
    if named.is_empty() {
        let beside = env::current_exe().ok();
        let places = [
            Some(PathBuf::from(DIST)),
            Some(workspace.join(DIST)),
            beside.and_then(|program| Some(program.parent()?.join(DIST))),
        ];
        let place = places.into_iter().flatten().find(|place| place.is_dir());
        if let Some(place) = place {
            packages = at(&place)?;
        }
    }
    if packages.is_empty() {
        return Err(Failure::misuse("there is no package of the agent to deploy").hint(
            "make one: packaging/package.sh --binary \"$(cross/build.sh arm64)\" --arch arm64 --out dist; or name one with --package",
        ));
    }
    Ok(packages)
}

fn at(path: &Path) -> Result<Vec<Package>, PackageError> {
    if path.is_dir() {
        return Package::all_in(path);
    }
    Ok(vec![Package::open(path)?])
}
