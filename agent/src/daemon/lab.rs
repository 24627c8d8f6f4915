//! The broker and the coordinator that the daemon uses. They come from its configuration or its enrollment. Without
//! either, the daemon waits for an enrollment. A board can thus be installed first and enrolled later, without a
//! restart.

use std::{
    future::pending,
    io,
    thread::{self, JoinHandle},
    time::Duration,
};

use regatta_types::BrokerAddress;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{interval, sleep},
};

use super::supervisor::Supervisor;
use crate::{
    config::{AgentConfig, InvalidBroker, broker_address},
    enrollment::{Enrollment, FirstBoot, TOKEN_FILE},
    exit::Failure,
};

/// Interval between checks for an enrollment.
const ENROLLMENT_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The lab that the daemon belongs to.
#[derive(Debug)]
pub(super) struct Lab {
    pub(super) broker: BrokerAddress,
    /// The public key of the coordinator. `None` on a device that is not enrolled.
    pub(super) coordinator_key: Option<[u8; 32]>,
}

/// Why the lab cannot be determined.
#[derive(Debug, thiserror::Error)]
enum LabError {
    #[error("the enrollment has an invalid broker address: {0}")]
    Broker(InvalidBroker),
    #[error("the daemon's signals cannot be waited for")]
    Signals(#[source] io::Error),
}

/// Determines the lab and waits for an enrollment if needed. Returns `None` if a stop signal arrives first.
///
/// # Errors
/// When an enrollment exists but cannot be read, or signals cannot be awaited.
pub(super) async fn find(config: &AgentConfig, supervisor: &Supervisor) -> Result<Option<Lab>, Failure> {
    if let Some(lab) = enrolled_lab(config)? {
        return Ok(Some(lab));
    }
    if config.state_dir.join(TOKEN_FILE).exists() {
        tracing::info!("not enrolled yet: the saved token will be used when the coordinator can be reached");
    } else {
        tracing::warn!(
            "not enrolled: waiting for `regatta-agent enroll`, with a token of `regatta device add NAME` on the workstation"
        );
    }
    let mut first_boot = Some(FirstBoot::new(&config.state_dir));
    let mut attempt: Option<JoinHandle<FirstBoot>> = None;
    let signals = |e| Failure::could_not(LabError::Signals(e));
    let mut terminate = signal(SignalKind::terminate()).map_err(signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(signals)?;
    let mut watchdog = supervisor.watchdog_interval().map(interval);
    supervisor.ready();
    loop {
        let alive = async {
            match &mut watchdog {
                Some(watchdog) => watchdog.tick().await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = sleep(ENROLLMENT_CHECK_INTERVAL) => {
                if let Some(lab) = enrolled_lab(config)? { return Ok(Some(lab)) }
                // On a separate thread, so that a slow coordinator does not delay the watchdog.
                if attempt.as_ref().is_some_and(JoinHandle::is_finished) {
                    first_boot = attempt.take().and_then(|attempt| attempt.join().ok());
                }
                if config.state_dir.join(TOKEN_FILE).exists() && let Some(mut waiting) = first_boot.take() {
                    attempt = Some(thread::spawn(move || { waiting.attempt(); waiting }));
                }
            },
            _ = alive => supervisor.alive(),
            _ = terminate.recv() => return Ok(None),
            _ = interrupt.recv() => return Ok(None),
        }
    }
}

fn enrolled_lab(config: &AgentConfig) -> Result<Option<Lab>, Failure> {
    let enrollment = Enrollment::load(&config.state_dir).map_err(Failure::could_not)?;
    let broker = match (&config.broker, &enrollment) {
        (Some(broker), None) if broker.tls => return Ok(None),
        (None, None) => return Ok(None),
        (Some(broker), _) => broker.clone(),
        (None, Some(enrollment)) => {
            broker_address(&enrollment.broker).map_err(|why| Failure::could_not(LabError::Broker(why)))?
        }
    };
    if let Some(difference) = enrollment
        .as_ref()
        .and_then(|enrollment| enrollment.other_name(&config.name))
    {
        tracing::warn!("{difference}");
    }
    if !broker.tls && !broker.is_loopback() {
        tracing::warn!(
            "unencrypted MQTT to {}: anyone on the network can read and forge messages (allow_plain)",
            broker.host
        );
    }
    Ok(Some(Lab {
        broker,
        coordinator_key: enrollment.map(|enrollment| enrollment.coordinator_key),
    }))
}
