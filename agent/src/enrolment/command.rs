//! `regatta-agent enroll`: uses a token, once, and keeps what the coordinator answers.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::Duration,
};

use regatta_text::EscapedText;
use regatta_wire::enrolment::{EnrolPurpose, EnrolmentToken};

use super::{
    Enrolment,
    exchange::{self, ExchangeError, Place},
};
use crate::{
    cli::EnrollArgs,
    config::AgentConfig,
    exit::{self, Failure},
    identity::DeviceIdentity,
};

/// Attempts while the coordinator cannot answer.
const ATTEMPTS: usize = 5;
/// Time between two of them.
const PAUSE: Duration = Duration::from_secs(2);

/// Enrols this device.
///
/// # Errors
/// A token or configuration that does not read (2); a coordinator that cannot be reached or refuses (3).
pub(crate) fn enroll(args: &EnrollArgs) -> Result<u8, Failure> {
    let token: EnrolmentToken = given_token(&args.token)?.parse().map_err(Failure::usage)?;
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
    let enrolment = enrol_patiently(&token, &config.state_dir, &identity).map_err(|error| match error {
        EnrolError::Exchange(error) => Failure::could_not(error),
        EnrolError::Keep(error) => Failure::could_not(error),
    })?;
    // Nobody is left to tell when standard output is gone.
    let _ = writeln!(
        EscapedText(std::io::stdout()),
        "enrolled as {} ({}), broker {}, certificate until {}",
        enrolment.name,
        identity.id(),
        enrolment.broker,
        enrolment.not_after
    );
    Ok(exit::OK)
}

/// Uses a token, and once more after a pause while the coordinator says that it cannot now.
fn enrol_patiently(
    token: &EnrolmentToken,
    state_dir: &Path,
    identity: &DeviceIdentity,
) -> Result<Enrolment, EnrolError> {
    for _ in 1..ATTEMPTS {
        match enrol_with(token.clone(), state_dir, identity) {
            Err(EnrolError::Exchange(ExchangeError::NotNow(_))) => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    enrol_with(token.clone(), state_dir, identity)
}

/// Why a token brought no enrolment.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnrolError {
    /// The coordinator was not reached, or did not want the device.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// What it answered cannot be kept.
    #[error(transparent)]
    Keep(#[from] super::EnrolmentError),
}

impl EnrolError {
    /// Whether the token may still work later: the fault is in the network, at the coordinator or on this device's disk.
    pub(super) const fn is_passing(&self) -> bool {
        match self {
            Self::Exchange(error) => error.is_passing(),
            Self::Keep(error) => matches!(error, super::EnrolmentError::File { .. }),
        }
    }
}

/// Uses a token for this device. The certificate is renewed where the token worked: that is the way to the coordinator which
/// is known to lead there.
///
/// # Errors
/// [`EnrolError`].
pub(super) fn enrol_with(
    token: EnrolmentToken,
    state_dir: &Path,
    identity: &DeviceIdentity,
) -> Result<Enrolment, EnrolError> {
    let place = Place {
        host: token.host,
        port: token.port,
        authority: token.authority,
    };
    let purpose = EnrolPurpose::Enrol { secret: token.secret };
    let mut credentials = exchange::ask(&place, purpose, identity)?;
    credentials.enrolment = place.address();
    Ok(Enrolment::keep(credentials, state_dir, identity)?)
}

/// The token as it was given: the word itself, or the first line of standard input for `-`.
fn given_token(word: &str) -> Result<String, Failure> {
    if word != "-" {
        return Ok(word.to_owned());
    }
    let mut line = String::new();
    io::stdin()
        .read_line(&mut line)
        .map_err(|e| anyhow::Error::from(e).context("standard input gave no token"))?;
    Ok(line)
}
