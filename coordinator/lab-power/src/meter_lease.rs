//! The lease of a meter and of the device that it measures, for one session. It ends when it is dropped, or when this thread ends in any
//! other way.

use regatta_types::{DeviceId, RunId};

use regatta_lab_store::{Lease, LeaseState, Leased, LeasedDevice, Store, StoreError};

/// A meter or a device that cannot be leased.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another session has it.
    #[error(
        "session {session} of process {pid} uses the meter {meter}; hint: wait for its end, or name another with --meter"
    )]
    Busy {
        meter: String,
        session: String,
        /// Its process.
        pid: u32,
    },
    /// A session has it whose process cannot be seen from here.
    #[error(
        "session {session} of a process on another machine or in another container has the meter {meter}; \
         hint: if that process has ended, `regatta meter free {meter}`"
    )]
    Unknown { meter: String, session: String },
    /// A session with another meter has the device.
    #[error(
        "session {} measures the device with the meter {}; hint: wait for its end: `regatta power show {}`",
        .0.session, .0.meter, .0.session
    )]
    DeviceBusy(LeasedDevice),
    /// The device has other runs, which would be measured too.
    #[error(
        "the device has unfinished runs: {}; hint: wait for their end, or end them with `regatta runs abort {}`",
        list(.0), .0.first().map(ToString::to_string).unwrap_or_default()
    )]
    DeviceHasRuns(Vec<RunId>),
    /// The meter was removed.
    #[error("the meter {0} was removed; hint: `regatta meter list` shows all of them")]
    Gone(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LeaseError {
    /// Creates the refusal of a meter that a session has.
    pub fn of(meter: &str, lease: &Lease) -> Self {
        let (meter, session) = (meter.to_owned(), lease.session.clone());
        match lease.state() {
            LeaseState::Unknown => Self::Unknown { meter, session },
            LeaseState::Held | LeaseState::Stale => Self::Busy {
                meter,
                session,
                pid: lease.pid(),
            },
        }
    }
}

/// Returns the first runs of a list, in words.
fn list(runs: &[RunId]) -> String {
    let first: Vec<String> = runs.iter().take(3).map(ToString::to_string).collect();
    match runs.len() - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// A leased meter and a leased device.
pub(crate) struct MeterLease<'a> {
    store: &'a Store,
    meter: String,
    session: String,
    ended: Option<Lease>,
}

impl<'a> MeterLease<'a> {
    /// Leases a meter and a device. Ends the session of a process that no longer exists.
    ///
    /// # Errors
    /// [`LeaseError`]
    pub(crate) fn take(
        store: &'a Store,
        meter: &str,
        session: &str,
        device: &DeviceId,
    ) -> Result<Self, LeaseError> {
        let ended = match store.meters().lease(meter, session, device)? {
            Leased::MeterBusy(lease) => return Err(LeaseError::of(meter, &lease)),
            Leased::DeviceBusy(device) => return Err(LeaseError::DeviceBusy(device)),
            Leased::DeviceHasRuns(runs) => return Err(LeaseError::DeviceHasRuns(runs)),
            Leased::Gone => return Err(LeaseError::Gone(meter.to_owned())),
            Leased::Taken { ended } => ended,
        };
        Ok(Self {
            store,
            meter: meter.to_owned(),
            session: session.to_owned(),
            ended,
        })
    }

    /// Returns the stale lease that it replaced.
    pub(crate) fn ended(&self) -> Option<&Lease> {
        self.ended.as_ref()
    }
}

impl Drop for MeterLease<'_> {
    fn drop(&mut self) {
        // A store that fails here leaves a lease that is stale once this process ends.
        let _ = self.store.meters().release(&self.meter, &self.session);
    }
}
