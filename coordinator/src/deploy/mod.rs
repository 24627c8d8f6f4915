//! Deploys the agent to boards over SSH, from a login to a device that sends its hello. A deployment can be repeated.
//!
//! [`Deployment`] runs the steps, and [`package`] has the packages. [`regatta_ssh::Board`] is the interface between the
//! steps and the link. [`image`] has the files that `regatta device image` writes for a board before it is flashed.

mod compatibility;
mod contents;
mod deployment;
mod error;
mod hello;
mod identity;
mod image;
mod install_method;
mod lab;
mod order;
mod package;
mod settings;
mod site;
mod survey;

pub(crate) use deployment::Deployment;
pub(crate) use error::DeployError;
pub(crate) use image::Image;
pub(crate) use install_method::InstallMethod;
pub(crate) use lab::{Lab, LabError};
pub(crate) use order::{DeployOutcome, Order, ProgressReporter};
pub(crate) use package::{Package, PackageError};
