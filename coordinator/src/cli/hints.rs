//! Hints for a daemon that does not start.

use crate::exit::Failure;
use regatta_dashboard::PageServerError;
use regatta_lab_net::{
    assets::ServerError, broker::BrokerError, enrollment::EnrollmentError, link::LinkError,
};
use regatta_lab_runs::RunsNotInStore;
use regatta_lab_store::workspace::{CONFIG_FILE, LockError, Workspace};

/// Adds the hint to the error of a daemon that does not start.
pub(crate) fn with_hint(error: anyhow::Error, workspace: &Workspace) -> Failure {
    let config = workspace.root().join(CONFIG_FILE);
    let hint = hint(&error, &config.display().to_string());
    Failure::from(error).optional_hint(hint)
}

/// Returns the hint for a user about the error.
fn hint(error: &anyhow::Error, config: &str) -> Option<String> {
    let other_port = |key| Some(format!("set another port with `{key}` in {config}"));
    if let Some(BrokerError::PortInUse(..)) = error.downcast_ref() {
        return Some(format!(
            "set another port with `listen` in {config}, or use that program with `broker = \"mqtt://...\"` if it is a broker"
        ));
    }
    if let Some(EnrollmentError::PortInUse(..)) = error.downcast_ref() {
        return other_port("enroll_listen");
    }
    if let Some(ServerError::PortInUse(..)) = error.downcast_ref() {
        return other_port("assets_listen");
    }
    if let Some(PageServerError::PortInUse(..)) = error.downcast_ref() {
        return other_port("dashboard_listen");
    }
    if let Some(LockError::HeldSlot { .. }) = error.downcast_ref() {
        return Some("`regatta serve --stop` ends it".to_owned());
    }
    if error.is::<LinkError>() {
        return Some(format!("start that broker, or set `broker` in {config}"));
    }
    error.is::<RunsNotInStore>().then(|| {
        "restore regatta.db from a copy, or make it from the records: `regatta runs rebuild`".to_owned()
    })
}
