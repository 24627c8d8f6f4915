//! `regatta-agent enroll`: enrolls the device with a token and stores the coordinator's response. A device without a configuration gets
//! one.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::Duration,
};

use regatta_terminal::fit;
use regatta_text::escape_lines;
use regatta_types::ExitCode;
use regatta_wire::enrollment::{EnrollPurpose, EnrollmentToken};

use super::{
    Enrollment,
    exchange::{self, ExchangeError, Place},
    former_identity::FormerIdentity,
};
use crate::{
    cli::EnrollArgs,
    config::AgentConfig,
    exit::Failure,
    identity::{DeviceIdentity, KEY_FILE},
};

/// Attempts while the coordinator is temporarily unable to answer.
const ATTEMPTS: usize = 5;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_secs(2);

/// Enrolls this device.
///
/// # Errors
/// A token or configuration that does not parse (2); a coordinator that cannot be reached or refuses (3).
pub(crate) fn enroll(args: &EnrollArgs) -> Result<ExitCode, Failure> {
    let token: EnrollmentToken = read_token(&args.token)?.parse().map_err(Failure::usage)?;
    let (config, new) = args.config.load_or_create(&host_name())?;
    let former = if args.new_identity {
        FormerIdentity::set_aside(&config.state_dir)?
    } else {
        None
    };
    let renaming = if args.rename {
        Renaming::Allowed
    } else {
        Renaming::Refused
    };
    let enrolled = enroll_with(&token, &config, renaming);
    if enrolled.is_err() {
        if let Some(new) = &new {
            // The lab's name is not known, so the next attempt writes the file again.
            new.remove();
        }
        if let Some(former) = &former {
            former.put_back()?;
        }
    }
    let (identity, enrollment) = enrolled?;
    let mut lines = Vec::new();
    lines.extend(former.map(|former| former.sentence()));
    lines.push(format!(
        "enrolled as {} ({})\nbroker {}, certificate until {}",
        enrollment.name,
        identity.id(),
        enrollment.broker,
        enrollment.not_after
    ));
    if let Some(new) = new {
        new.write(&enrollment.name)?;
        let (path, command) = (new.path.display(), new.serve_command());
        lines.push(format!("wrote {path}; start the agent:\n  {command}"));
    } else if let Some(difference) = enrollment.other_name(&config.name) {
        lines.push(difference);
    }
    let text = lines.join("\n");
    // Standard output may be closed.
    let _ = writeln!(io::stdout(), "{}", fit(&escape_lines(&text), &io::stdout()));
    Ok(ExitCode::Success)
}

/// Uses the token for a device with this configuration.
///
/// # Errors
/// The state directory cannot be used (2), or the coordinator cannot be reached or refuses (3).
pub(crate) fn enroll_with(
    token: &EnrollmentToken,
    config: &AgentConfig,
    renaming: Renaming,
) -> Result<(DeviceIdentity, Enrollment), Failure> {
    fs::create_dir_all(&config.state_dir).map_err(|e| {
        let state_dir = config.state_dir.display();
        anyhow::Error::from(e).context(format!("the state directory {state_dir} cannot be used"))
    })?;
    let owner = fs::metadata(&config.state_dir).map(|of| of.uid());
    if owner.is_ok_and(|owner| owner != rustix::process::geteuid().as_raw()) {
        let state_dir = config.state_dir.display();
        return Err(Failure::usage(anyhow::anyhow!(
            "{state_dir} belongs to another user, who could not read the enrollment; hint: run this as that user, with `sudo -u`"
        )));
    }
    let identity =
        DeviceIdentity::load_or_create(&config.state_dir.join(KEY_FILE)).map_err(Failure::could_not)?;
    let enrolled = enroll_patiently(token, &config.state_dir, &identity, renaming);
    let enrollment = enrolled.map_err(|error| match error {
        EnrollError::Exchange(error @ ExchangeError::OtherName { .. }) => {
            Failure::usage(anyhow::Error::new(error))
        }
        EnrollError::Exchange(error) => Failure::could_not(error),
        EnrollError::Keep(error) => Failure::could_not(error),
    })?;
    Ok((identity, enrollment))
}

/// The machine's own name, until the lab's is known.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Uses a token, and retries after a pause while the coordinator is temporarily unable to answer.
fn enroll_patiently(
    token: &EnrollmentToken,
    state_dir: &Path,
    identity: &DeviceIdentity,
    renaming: Renaming,
) -> Result<Enrollment, EnrollError> {
    for _ in 1..ATTEMPTS {
        match use_token(token.clone(), state_dir, identity, renaming) {
            Err(EnrollError::Exchange(ExchangeError::NotNow(_))) => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    use_token(token.clone(), state_dir, identity, renaming)
}

/// Whether a token may change the name of an enrolled device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renaming {
    /// It may not. A token on an enrolled device is usually meant for another one.
    Refused,
    /// It may: the user requests it.
    Allowed,
}

/// Why an enrollment failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnrollError {
    /// The coordinator was not reached, or refused the device.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The response cannot be stored.
    #[error(transparent)]
    Keep(#[from] super::EnrollmentError),
}

impl EnrollError {
    /// Returns whether the token may still work later, because the cause is the network, the coordinator or this
    /// device's disk.
    pub(super) const fn is_passing(&self) -> bool {
        match self {
            Self::Exchange(error) => error.is_passing(),
            Self::Keep(error) => matches!(error, super::EnrollmentError::File { .. }),
        }
    }
}

/// Enrolls this device with a token. The certificate is later renewed at the token's address, because that address is
/// known to reach the coordinator.
///
/// # Errors
/// [`EnrollError`].
pub(super) fn use_token(
    token: EnrollmentToken,
    state_dir: &Path,
    identity: &DeviceIdentity,
    renaming: Renaming,
) -> Result<Enrollment, EnrollError> {
    let place = Place {
        host: token.host,
        port: token.port,
        authority: token.authority,
    };
    let secret = token.secret;
    let purpose = match renaming {
        Renaming::Refused => EnrollPurpose::Enroll { secret },
        Renaming::Allowed => EnrollPurpose::Rename { secret },
    };
    let mut credentials = exchange::request(&place, purpose, identity)?;
    credentials.enrollment = place.address();
    Ok(Enrollment::keep(credentials, state_dir, identity)?)
}

/// Returns the token from the command line, or from the first line of standard input for `-`.
fn read_token(word: &str) -> Result<String, Failure> {
    if word != "-" {
        return Ok(word.to_owned());
    }
    let mut line = String::new();
    io::stdin()
        .read_line(&mut line)
        .map_err(|e| anyhow::Error::from(e).context("standard input has no token"))?;
    Ok(line)
}
