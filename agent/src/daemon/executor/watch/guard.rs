//! The guard of a run's device state. It sets the state through the helper and also reads the controls itself where
//! permitted.

use std::{collections::BTreeMap, path::PathBuf};

use regatta_device_state::{
    board_controls::BoardControls,
    client::{HelperConnection, HelperError},
    device_control::DeviceControl,
    message::ControlReport,
    state_request::{ClockSetting, StateRequest},
};
use regatta_types::documents::{ControlProof, StateProof, end_reason};

use super::{column::HeldState, plan::WatchPlan};
use crate::daemon::runs::run_failure::RunFailure;

/// Controls that only root can read, so the helper must read them.
const FOR_ROOT: [DeviceControl; 2] = [DeviceControl::MemoryLock, DeviceControl::MemoryRate];

/// The guarded state of one run.
pub(super) struct Guard {
    board: BoardControls,
    socket: PathBuf,
    helper: Option<HelperConnection>,
    request: StateRequest,
    /// The proof so far.
    pub(super) proof: StateProof,
}

impl Guard {
    pub(super) fn new(plan: &WatchPlan) -> Self {
        let board = BoardControls::new(&plan.root);
        Self {
            socket: plan.socket.clone(),
            helper: None,
            request: StateRequest::default(),
            proof: StateProof {
                requested: plan.state.clone(),
                before: by_control_name(board.read_all()),
                ..StateProof::default()
            },
            board,
        }
    }

    /// Sets the requested state.
    ///
    /// # Errors
    /// When the state was not reached. The earlier state is then restored.
    pub(super) fn set(&mut self) -> Result<(), RunFailure> {
        let Some(requested) = &self.proof.requested else {
            return Ok(());
        };
        let name = requested.name.clone();
        let outcome = self.try_to_set();
        if outcome.is_err() {
            self.helper = None;
            self.proof.after = by_control_name(self.board.read_all());
        }
        outcome.map_err(|RunFailure(why)| format!("{} {name}: {why}", end_reason::STATE_REFUSED).into())
    }

    fn try_to_set(&mut self) -> Result<(), RunFailure> {
        let requested = self
            .proof
            .requested
            .as_ref()
            .map(regatta_types::documents::StateSpec::words);
        self.request = requested.unwrap_or_default().parse().map_err(RunFailure::of)?;
        let mut helper = HelperConnection::connect(&self.socket).map_err(RunFailure::of)?;
        self.proof.before = by_name(helper.read(&[]).map_err(RunFailure::of)?);
        let applied = helper.apply(&self.request);
        let lines = match &applied {
            Ok(lines) => lines,
            Err(HelperError::Refused { controls, .. }) => controls,
            Err(_) => &Vec::new(),
        };
        self.proof.set = lines.iter().map(control_proof).collect();
        let lines = applied.map_err(RunFailure::of)?;
        self.helper = Some(helper);
        // The agent verifies every control that it may read itself.
        for line in &lines {
            let read = self
                .board
                .path(line.control)
                .and_then(|_| self.board.read(line.control));
            if read.is_some() && read != line.requested {
                return Err(format!(
                    "{} was set to {}, and the agent reads {}",
                    line.control,
                    line.requested.as_deref().unwrap_or("-"),
                    read.unwrap_or_default()
                )
                .into());
            }
        }
        Ok(())
    }

    /// Returns the controls that were set and can be read, and whether the clocks are locked.
    pub(super) fn locks(&self) -> HeldState {
        let locked = |clock: Option<ClockSetting>| matches!(clock, Some(ClockSetting::Lock(_)));
        let set = self.proof.set.iter().filter_map(|proof| {
            let control: DeviceControl = proof.control.parse().ok()?;
            Some((control, proof.requested.clone()))
        });
        HeldState {
            files: set
                .clone()
                .filter_map(|(control, requested)| Some((control, requested, self.board.path(control)?)))
                .collect(),
            root: set.filter(|(control, _)| FOR_ROOT.contains(control)).collect(),
            cpu: locked(self.request.cpu),
            gpu: locked(self.request.gpu),
        }
    }

    /// Checks that the helper still holds the state. Returns the controls that only root can read.
    ///
    /// # Errors
    /// When the helper no longer holds the state.
    pub(super) fn check(&mut self) -> Result<BTreeMap<DeviceControl, Option<String>>, RunFailure> {
        let Some(helper) = &mut self.helper else {
            return Ok(BTreeMap::new());
        };
        // Other controls are readable without root. The request also shows that the helper is alive.
        let lines = helper.read(&FOR_ROOT).map_err(|e| {
            self.helper = None;
            RunFailure::of(e)
        })?;
        Ok(lines.into_iter().map(|line| (line.control, line.read)).collect())
    }

    /// Restores the state.
    pub(super) fn restore(&mut self) {
        if self.proof.requested.is_some() {
            self.proof.not_restored = self.try_to_restore().err().map(|e| RunFailure::of(e).0);
            if let Some(why) = &self.proof.not_restored {
                tracing::error!("the device's state is not restored: {why}");
            }
        } else {
            self.proof.after = by_control_name(self.board.read_all());
        }
    }

    /// Restores the state through the helper that holds it, or through a new connection if that one was lost.
    fn try_to_restore(&mut self) -> Result<(), HelperError> {
        let mut helper = match self.helper.take() {
            Some(helper) => helper,
            None => HelperConnection::connect(&self.socket)?,
        };
        let outcome = helper.restore();
        self.proof.after = by_name(helper.read(&[])?);
        outcome.map(drop)
    }
}

fn control_proof(line: &ControlReport) -> ControlProof {
    ControlProof {
        control: line.control.to_string(),
        before: line.before.clone(),
        requested: line.requested.clone().unwrap_or_default(),
        read: line.read.clone(),
    }
}

fn by_name(lines: Vec<ControlReport>) -> BTreeMap<String, String> {
    let controls = lines.into_iter();
    controls
        .filter_map(|line| Some((line.control.to_string(), line.read?)))
        .collect()
}

fn by_control_name(controls: BTreeMap<DeviceControl, String>) -> BTreeMap<String, String> {
    controls
        .into_iter()
        .map(|(control, value)| (control.to_string(), value))
        .collect()
}

/// Number of attempts to query the helper for leftovers.
const ATTEMPTS: u32 = 5;
const BETWEEN_ATTEMPTS: std::time::Duration = std::time::Duration::from_secs(1);

/// Restores the state that an earlier daemon or helper left set, if a helper is installed. This may take seconds. The
/// result is only logged.
pub(crate) fn restore_leftovers(socket: &std::path::Path) {
    match try_to_restore_leftovers(socket) {
        Err(HelperError::Unavailable { .. }) if !socket.exists() => {}
        Ok(lines) if lines.is_empty() => {}
        Ok(lines) => {
            let controls: Vec<String> = lines.iter().map(|line| line.control.to_string()).collect();
            tracing::warn!(
                "an earlier run left the device's state changed; restored: {}",
                controls.join(", ")
            );
        }
        // It is not known whether any state is set.
        Err(e @ (HelperError::Unavailable { .. } | HelperError::ConnectionLost(_))) => tracing::warn!(
            "whether a run has left the device's state set is not known: {}",
            RunFailure::of(e).0
        ),
        Err(e) => tracing::error!("the device's state is not restored: {}", RunFailure::of(e).0),
    }
}

/// Asks the helper to restore the state, and retries when the connection is lost. A restart of the helper's socket by
/// systemd closes the connection, for example during an installation of the package.
fn try_to_restore_leftovers(socket: &std::path::Path) -> Result<Vec<ControlReport>, HelperError> {
    let mut attempts = 1..=ATTEMPTS;
    loop {
        attempts.next();
        match HelperConnection::connect(socket).and_then(|mut helper| helper.restore()) {
            Err(HelperError::ConnectionLost(_)) if !attempts.is_empty() => {
                std::thread::sleep(BETWEEN_ATTEMPTS)
            }
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader, Write as _},
        os::unix::net::UnixListener,
    };

    use regatta_device_state::message::ResponseLine;

    use super::*;

    #[test]
    fn a_helper_whose_connection_is_reset_gets_the_request_again() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("state.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let helper = std::thread::spawn(move || {
            // Close the connection with an unread request, as systemd does when it restarts the socket.
            drop(listener.accept().unwrap());
            let (stream, _) = listener.accept().unwrap();
            let mut request = String::new();
            BufReader::new(&stream).read_line(&mut request).unwrap();
            writeln!(&stream, "{}", ResponseLine::Done).unwrap();
        });
        assert!(try_to_restore_leftovers(&socket).unwrap().is_empty());
        helper.join().unwrap();
    }
}
