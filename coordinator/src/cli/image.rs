//! `regatta device image`: files that bring a board into the lab at its first boot, before it is flashed.

use std::{
    fs,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use jiff::SignedDuration;
use regatta_text::HumanDuration;
use regatta_types::ExitCode;
use serde::Serialize;

use regatta_fsutil::hash::sha256_hex;

use super::{Context, deploy};
use crate::exit::{CommandResult, Failure};
use regatta_deploy::{Image, InstallMethod, Lab, PackageSource as _};
use regatta_lab_net::enrollment::check_name;
use regatta_lab_store::workspace::is_host;

/// Flags of `device image`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The device's name
    name: String,
    /// The directory to write to [default: image-NAME]
    #[arg(long = "output", value_name = "DIR")]
    out: Option<PathBuf>,
    /// The board's processor
    #[arg(long, value_name = "ARCH", default_value = "arm64", value_parser = ["arm64", "amd64"])]
    arch: String,
    /// How long the board's token is valid: the board must boot for the first time before it expires
    #[arg(long, value_name = "DURATION", default_value = "168h")]
    lifetime: HumanDuration,
    /// The agent's Debian package, or a directory of packages [default: dist-out here, packages in the workspace, those installed
    /// with this program, or dist-out of its sources]
    #[arg(long, value_name = "PATH")]
    package: Vec<PathBuf>,
    /// Name or address at which the board will reach this machine [default: `host` in regatta.toml]
    #[arg(long, value_name = "HOST")]
    coordinator: Option<String>,
}

#[derive(Serialize)]
struct ImageDocument<'a> {
    name: &'a str,
    overlay: PathBuf,
    user_data: PathBuf,
    meta_data: PathBuf,
    agent: &'a str,
    expires: &'a str,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    check_name(&args.name).map_err(Failure::usage)?;
    let (workspace, store) = context.open_store()?;
    let lab = Lab::of(&workspace)?;
    if lab.authority.is_none() {
        return Err(
            Failure::misuse("this workspace has no keys: boards cannot enroll")
                .hint("`regatta init` creates a workspace with keys"),
        );
    }
    if let Some(host) = args.coordinator.as_deref().filter(|host| !is_host(host)) {
        return Err(Failure::misuse(format!(
            "--coordinator is a name or address, without scheme and port, not `{host}`"
        )));
    }
    let host = lab
        .host_for(args.coordinator.as_deref(), None)
        .map_err(deploy::lab_failure)?;
    let places = deploy::PackagePlaces::find(&args.package, workspace.root())?;
    let packages = places.at_hand();
    let package = packages
        .iter()
        .find(|package| package.way == InstallMethod::System && package.architecture == args.arch)
        .ok_or_else(|| {
            Failure::misuse(format!("no Debian package for {} found", args.arch))
                .hint(places.missing(&args.arch).hint)
        })?;
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("image-{}", args.name)));
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let lifetime = SignedDuration::from_millis(i64::try_from(args.lifetime.millis()).unwrap_or(i64::MAX));
    let made = lab
        .token(&store, &args.name, &host, None, Some(lifetime))
        .map_err(|error| Failure::of_kind(error.kind(), error))?;
    let token = made.token.to_string();
    let image = Image::new(package, &lab.settings(&args.name, &host, None), &token)?;
    let instance: String = sha256_hex(token.as_bytes()).chars().take(12).collect();
    let document = ImageDocument {
        name: &args.name,
        overlay: out.join("overlay.tar.gz"),
        user_data: out.join("user-data"),
        meta_data: out.join("meta-data"),
        agent: &package.version,
        expires: &made.expires,
    };
    write(&document.overlay, &image.overlay()?)?;
    write(&document.user_data, image.user_data().as_bytes())?;
    write(&document.meta_data, image.meta_data(&instance).as_bytes())?;
    context.print(&document, || {
        format!(
            "{}: for a root file system, before it is flashed: sudo tar -xpzf {} -C Linux_for_Tegra/rootfs\n\
             {}, {}: the same for cloud-init\n\
             {} enrolls by itself at {host}, when its first boot is before {}; anyone who has these files until then can enroll in its place",
            document.overlay.display(),
            document.overlay.display(),
            document.user_data.display(),
            document.meta_data.display(),
            args.name,
            made.expires,
        )
    })?;
    Ok(ExitCode::Success)
}

/// Writes a file that holds a token: for its owner only.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    use std::io::Write as _;
    let open = |path: &Path| {
        // An existing file may have been readable by others.
        let _ = fs::remove_file(path);
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
    };
    open(path)
        .and_then(|mut file| file.write_all(bytes))
        .with_context(|| format!("{} cannot be written", path.display()))
}
