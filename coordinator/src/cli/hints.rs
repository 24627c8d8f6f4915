//! Hints for a daemon that does not start.

use crate::{
    broker::BrokerError,
    enrolment::EnrolmentError,
    exit::Failure,
    runs::RunsNotInStore,
    workspace::{CONFIG_FILE, LockError, Workspace},
};

/// Adds the hint to the error of a daemon that does not start.
pub(crate) fn with_hint(error: anyhow::Error, workspace: &Workspace) -> Failure {
    let config = workspace.root().join(CONFIG_FILE);
    let hint = match error.downcast_ref() {
        Some(BrokerError::PortInUse(..)) => Some(format!(
            "set another port with `listen` in {}, or use that program with `broker = \"mqtt://...\"` if it is a broker",
            config.display()
        )),
        _ => None,
    };
    let hint = hint.or_else(|| {
        matches!(error.downcast_ref(), Some(LockError::HeldSlot { .. }))
            .then(|| "end it first, or use it as it is".to_owned())
    });
    let hint = hint.or_else(|| {
        matches!(error.downcast_ref(), Some(EnrolmentError::PortInUse(..)))
            .then(|| format!("set another port with `enrol_listen` in {}", config.display()))
    });
    let hint = hint.or_else(|| {
        error
            .is::<crate::link::LinkError>()
            .then(|| format!("start that broker, or set `broker` in {}", config.display()))
    });
    let hint = hint.or_else(|| {
        error.is::<RunsNotInStore>().then(|| {
            "restore regatta.db from a copy, or make it from the records: `regatta runs rebuild`".to_owned()
        })
    });
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
