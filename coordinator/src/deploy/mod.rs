//! Deploying the agent: from a login on a board to a device that says hello, over SSH, repeatable at will.
//!
//! [`Deployment`] takes the steps; [`ssh`] carries them; [`package`] knows what is installed. Between the steps and the link stands
//! [`board::Board`]. What `regatta device image` writes for a board that is yet to be flashed stands in [`image`].

mod board;
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
mod secret;
mod settings;
mod site;
pub(crate) mod ssh;
mod survey;

pub(crate) use deployment::Deployment;
pub(crate) use error::DeployError;
pub(crate) use image::Image;
pub(crate) use install_method::InstallMethod;
pub(crate) use lab::{Lab, LabError};
pub(crate) use order::{DeployOutcome, Order, ProgressReporter};
pub(crate) use package::{Package, PackageError};
pub(crate) use secret::Secret;
