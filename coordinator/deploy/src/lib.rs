//! Deploys the agent to boards over SSH, from a login to a device that sends its hello. A deployment can be repeated.
//!
//! [`Deployment`] runs the steps, and `package` has the packages. [`regatta_ssh::Board`] is the interface between the
//! steps and the link. `image` has the files that `regatta device image` writes for a board before it is flashed.

mod board_installation;
mod compatibility;
mod contents;
mod deployment;
mod error;
mod examination;
mod hello;
mod identity;
mod image;
mod install_method;
mod lab;
mod order;
mod package;
mod package_source;
mod repacked;
mod settings;
mod shim;
mod shim_compiler;
mod survey;
mod tensorrt_headers;

pub use deployment::Deployment;
pub use error::DeployError;
pub use image::Image;
pub use install_method::InstallMethod;
pub use lab::{Lab, LabError};
pub use order::{DeployOutcome, Order, ProgressReporter};
pub use package::{Package, PackageError};
pub use package_source::{NoPackageError, PackageSource};
pub use shim::ShimCache;
