//! Which packages are at hand: those that were named, else those that lie where `packaging/package.sh` is told to put them.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::{
    deploy::{Package, PackageError},
    exit::Failure,
};

/// The directory's usual name (docs/headless.md).
const DIST: &str = "dist";

/// Reads the packages: `named` files and directories, else a `dist` here, in the workspace or beside this program.
///
/// # Errors
/// A file that is no package, or no package at all.
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
