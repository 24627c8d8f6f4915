//! The guard of a run's device state: it sets the state through the helper, and also reads the controls itself where it may.

use std::{collections::BTreeMap, path::PathBuf};

use regatta_state::{
    board_controls::BoardControls,
    client::{HelperConnection, HelperError},
    device_control::DeviceControl,
    message::ControlReport,
    state_request::{ClockSetting, StateRequest},
};
use regatta_types::documents::{KnobProof, StateProof};

use super::{column::HeldState, plan::WatchPlan};

/// What only root can read, and so only the helper can look at.
const FOR_ROOT: [DeviceControl; 2] = [DeviceControl::MemoryLock, DeviceControl::MemoryRate];

/// The state of one run.
pub(super) struct Guard {
    board: BoardControls,
    socket: PathBuf,
    helper: Option<HelperConnection>,
    request: StateRequest,
    /// What is proven so far.
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
                asked: plan.state.clone(),
                before: words(board.read_all()),
                ..StateProof::default()
            },
            board,
        }
    }

    /// Brings the device into the requested state.
    ///
    /// # Errors
    /// Why it is not in it, in words; then it is as it was.
    pub(super) fn set(&mut self) -> Result<(), String> {
        let Some(asked) = &self.proof.asked else {
            return Ok(());
        };
        let name = asked.name.clone();
        let outcome = self.try_to_set();
        if outcome.is_err() {
            self.helper = None;
            self.proof.after = words(self.board.read_all());
        }
        outcome.map_err(|why| format!("the device is not in the state {name}: {why}"))
    }

    fn try_to_set(&mut self) -> Result<(), String> {
        let asked = self
            .proof
            .asked
            .as_ref()
            .map(regatta_types::documents::StateSpec::words);
        self.request = asked.unwrap_or_default().parse().map_err(in_words)?;
        let mut helper = HelperConnection::connect(&self.socket).map_err(in_words)?;
        self.proof.before = by_name(helper.read(&[]).map_err(in_words)?);
        let applied = helper.apply(&self.request);
        let lines = match &applied {
            Ok(lines) => lines,
            Err(HelperError::Refused { controls, .. }) => controls,
            Err(_) => &Vec::new(),
        };
        self.proof.set = lines.iter().map(knob_proof).collect();
        let lines = applied.map_err(in_words)?;
        self.helper = Some(helper);
        // Two pairs of eyes: what the agent may read, it reads itself.
        for line in &lines {
            let seen = self
                .board
                .path(line.control)
                .and_then(|_| self.board.read(line.control));
            if seen.is_some() && seen != line.requested {
                return Err(format!(
                    "{} was set to {}, and the agent reads {}",
                    line.control,
                    line.requested.as_deref().unwrap_or("-"),
                    seen.unwrap_or_default()
                ));
            }
        }
        Ok(())
    }

    /// What was set and can be looked at, and at which rate the clocks are locked.
    pub(super) fn locks(&self) -> HeldState {
        let locked = |clock: Option<ClockSetting>| matches!(clock, Some(ClockSetting::Lock(_)));
        let set = self.proof.set.iter().filter_map(|proof| {
            let knob: DeviceControl = proof.knob.parse().ok()?;
            Some((knob, proof.wanted.clone()))
        });
        HeldState {
            files: set
                .clone()
                .filter_map(|(knob, wanted)| Some((knob, wanted, self.board.path(knob)?)))
                .collect(),
            root: set.filter(|(knob, _)| FOR_ROOT.contains(knob)).collect(),
            cpu: locked(self.request.cpu),
            gpu: locked(self.request.gpu),
        }
    }

    /// Whether the helper still holds the state; what root alone can read, where that was set.
    ///
    /// # Errors
    /// When it does not, in words.
    pub(super) fn look(&mut self) -> Result<BTreeMap<DeviceControl, Option<String>>, String> {
        let Some(helper) = &mut self.helper else {
            return Ok(BTreeMap::new());
        };
        // A fan's or a GPU's state needs no root to be read; the question alone shows that the helper lives.
        let lines = helper.read(&FOR_ROOT).map_err(|e| {
            self.helper = None;
            in_words(e)
        })?;
        Ok(lines.into_iter().map(|line| (line.control, line.read)).collect())
    }

    /// Puts everything back.
    pub(super) fn put_back(&mut self) {
        if self.proof.asked.is_some() {
            self.proof.not_put_back = self.ask_to_put_back().err().map(in_words);
            if let Some(why) = &self.proof.not_put_back {
                tracing::error!("the device's state is not put back: {why}");
            }
        } else {
            self.proof.after = words(self.board.read_all());
        }
    }

    /// Through the helper that holds the state; through another one, when that was lost.
    fn ask_to_put_back(&mut self) -> Result<(), HelperError> {
        let mut helper = match self.helper.take() {
            Some(helper) => helper,
            None => HelperConnection::connect(&self.socket)?,
        };
        let outcome = helper.restore();
        self.proof.after = by_name(helper.read(&[])?);
        outcome.map(drop)
    }
}

fn knob_proof(line: &ControlReport) -> KnobProof {
    KnobProof {
        knob: line.control.to_string(),
        before: line.before.clone(),
        wanted: line.requested.clone().unwrap_or_default(),
        read: line.read.clone(),
    }
}

fn by_name(lines: Vec<ControlReport>) -> BTreeMap<String, String> {
    let knobs = lines.into_iter();
    knobs
        .filter_map(|line| Some((line.control.to_string(), line.read?)))
        .collect()
}

fn words(knobs: BTreeMap<DeviceControl, String>) -> BTreeMap<String, String> {
    knobs
        .into_iter()
        .map(|(knob, value)| (knob.to_string(), value))
        .collect()
}

fn in_words(e: impl std::error::Error + Send + Sync + 'static) -> String {
    format!("{:#}", anyhow::Error::from(e))
}

/// How often the helper is asked about leftovers.
const ATTEMPTS: u32 = 5;
const BETWEEN_ATTEMPTS: std::time::Duration = std::time::Duration::from_secs(1);

/// Puts back what a daemon or helper before this one has left, where there is a helper at all. Takes its time, and tells
/// the log.
pub(crate) fn put_back_leftovers(socket: &std::path::Path) {
    match restore_leftovers(socket) {
        Err(HelperError::Unavailable { .. }) if !socket.exists() => {}
        Ok(lines) if lines.is_empty() => {}
        Ok(lines) => {
            let knobs: Vec<String> = lines.iter().map(|line| line.control.to_string()).collect();
            tracing::warn!(
                "a run before this start had left the device's state set; put back: {}",
                knobs.join(", ")
            );
        }
        // Nothing is known to be set.
        Err(e @ (HelperError::Unavailable { .. } | HelperError::ConnectionLost(_))) => tracing::warn!(
            "whether a run has left the device's state set is not known: {}",
            in_words(e)
        ),
        Err(e) => tracing::error!("the device's state is not put back: {}", in_words(e)),
    }
}

/// Asks the helper again when the connection is lost: systemd drops it when the helper's socket is restarted meanwhile, as while
/// the package is being installed.
fn restore_leftovers(socket: &std::path::Path) -> Result<Vec<ControlReport>, HelperError> {
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

    use regatta_state::message::ResponseLine;

    use super::*;

    #[test]
    fn a_helper_whose_connection_is_reset_is_asked_again() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("state.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let helper = std::thread::spawn(move || {
            // Closed with an unread request, as when systemd restarts the socket.
            drop(listener.accept().unwrap());
            let (stream, _) = listener.accept().unwrap();
            let mut request = String::new();
            BufReader::new(&stream).read_line(&mut request).unwrap();
            writeln!(&stream, "{}", ResponseLine::Done).unwrap();
        });
        assert!(restore_leftovers(&socket).unwrap().is_empty());
        helper.join().unwrap();
    }
}
