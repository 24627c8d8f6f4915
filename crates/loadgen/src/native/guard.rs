//! Calls into the user's SUT and library. Their errors and panics become faults.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use regatta_text::ErrorChain;

use crate::sut::SutError;

/// The error of a call into the user's SUT or library.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// The call returned an error.
    #[error("{call} failed")]
    Failed {
        /// The call, for example `the SUT's issue_query`.
        call: &'static str,
        /// The error.
        #[source]
        source: SutError,
    },
    /// The call panicked.
    #[error("{call} panicked: {message}")]
    Panicked {
        /// The call.
        call: &'static str,
        /// The panic's message.
        message: String,
    },
}

impl CallError {
    /// Returns the fault that the logs record: the error and its causes in one line.
    #[cold]
    pub(super) fn fault(&self) -> String {
        ErrorChain(self).to_string()
    }
}

/// Calls the user's code and catches panics. LoadGen's own state stays consistent, because every call only passes shared references.
#[inline]
pub(super) fn call<T>(
    name: &'static str,
    call: impl FnOnce() -> Result<T, SutError>,
) -> Result<T, CallError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(source)) => Err(CallError::Failed { call: name, source }),
        Err(payload) => Err(panicked(name, &*payload)),
    }
}

#[cold]
fn panicked(call: &'static str, payload: &(dyn Any + Send)) -> CallError {
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message");
    CallError::Panicked {
        call,
        message: message.to_owned(),
    }
}
