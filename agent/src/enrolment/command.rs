//! `regatta-agent enroll`: uses a token, once, and keeps what the coordinator answers.

use std::{fs, io::Write as _, os::unix::fs::MetadataExt as _};

use regatta_wire::enrolment::{Purpose, Token};

use super::{
    Enrolment,
    exchange::{self, Place},
};
use crate::{
    cli::EnrollArgs,
    config::AgentConfig,
    exit::{self, Failure},
    identity::DeviceIdentity,
};

/// Enrols this device.
///
/// # Errors
/// A token or configuration that does not read (2); a coordinator that cannot be reached or refuses (3).
pub(crate) fn enroll(args: &EnrollArgs) -> Result<u8, Failure> {
    let token: Token = args.token.parse().map_err(Failure::usage)?;
    let config = AgentConfig::load(&args.config).map_err(Failure::usage)?;
    fs::create_dir_all(&config.state_dir).map_err(|e| {
        let state_dir = config.state_dir.display();
        anyhow::Error::from(e).context(format!("the state directory {state_dir} cannot be used"))
    })?;
    let owner = fs::metadata(&config.state_dir).map(|of| of.uid());
    if owner.is_ok_and(|owner| owner != rustix::process::geteuid().as_raw()) {
        let state_dir = config.state_dir.display();
        return Err(Failure::usage(anyhow::anyhow!(
            "{state_dir} belongs to another user, who could not read what is enrolled here: run this as that user, with \
             `sudo -u`"
        )));
    }
    let identity =
        DeviceIdentity::load_or_create(&config.state_dir.join("device.key")).map_err(Failure::could_not)?;
    let place = Place {
        host: token.host,
        port: token.port,
        authority: token.authority,
    };
    let purpose = Purpose::Enrol { secret: token.secret };
    let credentials = exchange::ask(&place, purpose, &identity).map_err(Failure::could_not)?;
    let enrolment = Enrolment::keep(credentials, &config.state_dir, &identity).map_err(Failure::could_not)?;
    // Nobody is left to tell when standard output is gone.
    let _ = writeln!(
        std::io::stdout(),
        "enrolled as {} ({}), broker {}, certificate until {}",
        enrolment.name,
        identity.id(),
        enrolment.broker,
        enrolment.not_after
    );
    Ok(exit::OK)
}
