//! The lease of a meter for one session. It ends when it is dropped, or when this process ends in any other way.

use crate::store::{Lease, Leased, Store, StoreError};

/// A meter that cannot be leased.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaseError {
    /// Another session has it.
    #[error(
        "session {session} of process {pid} uses the meter {meter}; hint: wait for its end, or name another with --meter"
    )]
    Busy {
        /// The meter.
        meter: String,
        /// The session.
        session: String,
        /// Its process.
        pid: u32,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A leased meter.
pub(crate) struct MeterLease<'a> {
    store: &'a Store,
    meter: String,
    session: String,
    ended: Option<Lease>,
}

impl<'a> MeterLease<'a> {
    /// Leases a meter. Ends the session of a process that no longer exists.
    ///
    /// # Errors
    /// [`LeaseError`]
    pub(crate) fn take(store: &'a Store, meter: &str, session: &str) -> Result<Self, LeaseError> {
        let ended = match store.lease_meter(meter, session)? {
            Leased::Busy(lease) => {
                return Err(LeaseError::Busy {
                    meter: meter.to_owned(),
                    session: lease.session.clone(),
                    pid: lease.pid(),
                });
            }
            Leased::Free { ended } => ended,
        };
        let lease = Self {
            store,
            meter: meter.to_owned(),
            session: session.to_owned(),
            ended,
        };
        if let Some(ended) = &lease.ended {
            store.power_session_ends(
                &ended.session,
                None,
                Some("the process of this session ended in the middle"),
            )?;
            let mut sessions = store.power_sessions()?.into_iter();
            if let Some(row) = sessions.find(|row| row.id == ended.session) {
                for run in [row.ranging, row.testing].into_iter().flatten() {
                    store.request_abort(run, "the process of its power session ended")?;
                }
            }
        }
        Ok(lease)
    }

    /// The stale lease that it replaced.
    pub(crate) fn ended(&self) -> Option<&Lease> {
        self.ended.as_ref()
    }
}

impl Drop for MeterLease<'_> {
    fn drop(&mut self) {
        // A store that fails here leaves a lease that is stale once this process ends.
        let _ = self.store.release_meter(&self.meter, &self.session);
    }
}
