//! Calls into the user's SUT and library. Their errors and panics become faults.

use std::{
    any::Any,
    error::Error,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::sut::SutError;

/// Calls the user's code and catches panics. LoadGen's own state stays consistent, because every call only passes shared references.
#[inline]
pub(super) fn call<T>(what: &str, call: impl FnOnce() -> Result<T, SutError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(failed(what, &*error)),
        Err(payload) => Err(panicked(what, &*payload)),
    }
}

#[cold]
fn failed(what: &str, error: &(dyn Error + Send + Sync)) -> String {
    format!("{what} failed: {}", chain(error))
}

#[cold]
fn panicked(what: &str, payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message");
    format!("{what} panicked: {text}")
}

/// Formats an error and its causes in one line.
pub(super) fn chain(error: &(dyn Error + Send + Sync)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
