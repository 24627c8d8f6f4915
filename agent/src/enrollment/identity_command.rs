//! `regatta-agent identity`: prints this device's identity and lab, for people and for `regatta device deploy`. It only
//! reads: a device without a key has no identity yet.

use std::io::Write as _;

use regatta_fsutil::hash::hex;
use regatta_text::{escape_json, escape_lines};
use regatta_types::ExitCode;
use serde::Serialize;

use super::Enrollment;
use crate::{
    cli::{Format, IdentityArgs},
    exit::Failure,
    identity::{DeviceIdentity, KEY_FILE},
};

/// The output as JSON. This format is stable: fields are added, but never renamed or removed.
#[derive(Debug, Serialize)]
struct IdentityDocument {
    /// The id, which is the fingerprint of the key. `None` before the first start.
    device: Option<String>,
    /// The Ed25519 public key, hexadecimal.
    public_key: Option<String>,
    enrollment: Option<EnrollmentDocument>,
}

#[derive(Debug, Serialize)]
struct EnrollmentDocument {
    name: String,
    broker: String,
    /// End of the certificate's validity: RFC 3339, UTC.
    not_after: String,
    /// SHA-256 of the lab authority's certificate, hexadecimal.
    authority_sha256: String,
}

/// Prints this device's identity.
///
/// # Errors
/// A configuration that does not parse (2); a key or an enrollment that cannot be read (3).
pub(crate) fn identity(args: &IdentityArgs) -> Result<ExitCode, Failure> {
    let (config, _) = args.config.load()?;
    let key = config.state_dir.join(KEY_FILE);
    let identity = if key.try_exists().map_err(anyhow::Error::from)? {
        Some(DeviceIdentity::load_or_create(&key).map_err(Failure::could_not)?)
    } else {
        None
    };
    let enrollment = Enrollment::load(&config.state_dir)
        .map_err(Failure::could_not)?
        .map(document)
        .transpose()?;
    let document = IdentityDocument {
        device: identity.as_ref().map(|identity| identity.id().to_string()),
        public_key: identity.as_ref().map(|identity| hex(&identity.public_key())),
        enrollment,
    };
    let printed = match args.format {
        Format::Json => {
            let document = serde_json::to_string_pretty(&document).map_err(anyhow::Error::from)?;
            escape_json(&document).into_owned()
        }
        Format::Text => escape_lines(&text(&document)).into_owned(),
    };
    // Standard output may be closed.
    let _ = writeln!(std::io::stdout(), "{printed}");
    Ok(ExitCode::Success)
}

fn document(enrollment: Enrollment) -> Result<EnrollmentDocument, Failure> {
    let authority = enrollment.authority_fingerprint().map_err(Failure::could_not)?;
    Ok(EnrollmentDocument {
        name: enrollment.name,
        broker: enrollment.broker,
        not_after: enrollment.not_after,
        authority_sha256: hex(&authority),
    })
}

fn text(document: &IdentityDocument) -> String {
    let device = document
        .device
        .as_deref()
        .unwrap_or("no key yet; the first start creates it");
    let lab = document.enrollment.as_ref().map_or_else(
        || "not enrolled".to_owned(),
        |lab| {
            format!(
                "enrolled as {}, broker {}, certificate until {}",
                lab.name, lab.broker, lab.not_after
            )
        },
    );
    format!("{device}\n{lab}")
}
