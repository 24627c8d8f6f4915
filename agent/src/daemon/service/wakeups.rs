//! What wakes the event loop up from outside of the daemon's components: timers, stop signals and the probe of the GPUs.

use std::{future::pending, io, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::{JoinHandle, spawn_blocking},
    time::{Interval, MissedTickBehavior, interval},
};

use crate::gpus::{self, FoundGpus};

/// Interval between checks of the device certificate's expiry.
const CERTIFICATE_CHECK_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// A reason to wake up.
#[derive(Debug)]
pub(super) enum Wakeup {
    /// A heartbeat is due.
    Heartbeat,
    /// The service manager expects a sign of life.
    Watchdog,
    /// The expiry of the device's certificate must be checked.
    CertificateCheck,
    /// CUDA has found these GPUs.
    GpusFound(FoundGpus),
    /// The daemon must stop.
    Stop,
}

/// The timers, signals and the probe.
#[derive(Debug)]
pub(super) struct Wakeups {
    heartbeat: Interval,
    watchdog: Option<Interval>,
    certificate: Interval,
    gpu_probe: Option<JoinHandle<FoundGpus>>,
    terminate: Signal,
    interrupt: Signal,
}

impl Wakeups {
    /// Starts the timers, and the probe if GPUs are looked for.
    ///
    /// # Errors
    /// When signals cannot be awaited.
    pub(super) fn new(
        heartbeat: Duration,
        watchdog: Option<Duration>,
        probes_gpus: bool,
    ) -> io::Result<Self> {
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let mut heartbeat = interval(heartbeat);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            heartbeat,
            watchdog: watchdog.map(interval),
            certificate: interval(CERTIFICATE_CHECK_INTERVAL),
            gpu_probe: probes_gpus.then(|| spawn_blocking(gpus::probe)),
            terminate,
            interrupt,
        })
    }

    /// Returns the next wake-up. The certificate is not checked while a run is active. Cancel-safe.
    pub(super) async fn next(&mut self, has_active_run: bool) -> Wakeup {
        tokio::select! {
            _ = self.heartbeat.tick() => Wakeup::Heartbeat,
            () = tick(&mut self.watchdog) => Wakeup::Watchdog,
            _ = self.certificate.tick(), if !has_active_run => Wakeup::CertificateCheck,
            gpus = found_gpus(&mut self.gpu_probe) => Wakeup::GpusFound(gpus),
            _ = self.terminate.recv() => Wakeup::Stop,
            _ = self.interrupt.recv() => Wakeup::Stop,
        }
    }
}

async fn tick(interval: &mut Option<Interval>) {
    match interval {
        Some(interval) => {
            interval.tick().await;
        }
        None => pending().await,
    }
}

/// Returns the GPUs that the probe finds, once. Waits forever if it finds none.
async fn found_gpus(probe: &mut Option<JoinHandle<FoundGpus>>) -> FoundGpus {
    if let Some(running) = probe {
        // A probe that panicked has found nothing.
        let found = running.await.unwrap_or_default();
        *probe = None;
        if !found.0.is_empty() {
            return found;
        }
    }
    pending().await
}
