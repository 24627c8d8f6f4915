//! A page that cannot be shown: the error and the hint, with its HTTP status.

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use maud::html;
use regatta_text::ErrorChain;
use regatta_types::ErrorKind;

use super::{layout, outside_text::shown};
use regatta_lab_power::SessionRecordError;
use regatta_lab_store::{StoreError, lab_error::LabError};

/// Seconds after which an address that sent too many wrong tokens may send one more: `Retry-After` of status 429.
pub(super) const TOKEN_PAUSE_S: u16 = 5;
/// Seconds after which a request may be repeated for which there was no place: `Retry-After` of status 503.
const BUSY_PAUSE_S: u16 = 5;

/// The reason why a page is not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct PageError {
    /// The HTTP status.
    pub(super) status: StatusCode,
    /// The error, in a sentence.
    pub(super) message: String,
    /// The hint about the fix.
    pub(super) hint: &'static str,
}

impl PageError {
    /// Creates the error of a request that the page does not understand.
    pub(super) fn bad_request(message: impl ToString) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            message: message.to_string(),
            hint: "Go back, or start from the fleet.",
        }
    }

    /// Creates the error of a page that does not exist.
    pub(super) fn not_found(message: impl ToString) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            message: message.to_string(),
            hint: "All pages are linked at the top.",
        }
    }
}

impl PageError {
    /// Creates the error of a device that the lab does not have.
    pub(super) fn no_device() -> Self {
        Self::not_found("there is no such device")
    }

    /// Creates the error of a campaign that the lab does not have.
    pub(super) fn no_campaign() -> Self {
        Self::not_found("there is no such campaign")
    }

    /// Creates the error of an action that the state of the lab does not permit.
    pub(super) fn conflict(message: impl ToString) -> Self {
        Self {
            status: StatusCode::CONFLICT,
            message: message.to_string(),
            hint: "Go back and reload the page: the lab has changed.",
        }
    }

    /// Creates the error of an action whose token or session has ended while it waited.
    pub(super) fn ended_permission() -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            message: "your token or session has ended, and nothing was changed".to_owned(),
            hint: "Log in again, and repeat the action.",
        }
    }

    /// Creates the error of a method that the page does not have at this address.
    pub(super) fn wrong_method() -> Self {
        Self {
            status: StatusCode::METHOD_NOT_ALLOWED,
            message: "method not allowed here".to_owned(),
            hint: "All pages are linked at the top.",
        }
    }

    /// Creates the error of too many different open views.
    pub(super) fn too_many_views() -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            message: "too many different pages are open".to_owned(),
            hint: "Close some of them.",
        }
    }

    /// Creates the error of too many requests that wait for an answer.
    pub(super) fn too_many_requests() -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            message: "too many of your requests are pending".to_owned(),
            hint: "Reload the page in some seconds.",
        }
    }

    /// Creates the error for a visitor whose token cannot be compared with the store.
    pub(super) fn unreadable_tokens() -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            message: "the tokens of this page cannot be read, so that it admits nobody".to_owned(),
            hint: "Try again in some seconds; the log of `regatta serve` has the cause.",
        }
    }

    /// Creates the error of a defect of the program.
    pub(super) fn internal() -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            message: "the page could not be rendered".to_owned(),
            hint: "The log of `regatta serve` has the cause.",
        }
    }
}

impl From<&LabError> for PageError {
    /// Converts the failure of an invalid request or of the coordinator. The sentence includes the hint.
    fn from(failure: &LabError) -> Self {
        if failure.kind() != ErrorKind::Usage {
            tracing::error!("the live page cannot compute: {}", failure.sentence());
            return Self::internal();
        }
        let hint = failure
            .advice()
            .map_or_else(String::new, |hint| format!("; {}", hint.replace('\n', "; ")));
        Self {
            hint: "The parameters match the options of the command with the same name; see its --help.",
            ..Self::bad_request(format!("{}{hint}", failure.sentence()))
        }
    }
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        anyhow::Error::from(error).into()
    }
}

impl From<SessionRecordError> for PageError {
    fn from(error: SessionRecordError) -> Self {
        Self {
            message: ErrorChain(&error).to_string(),
            ..Self::internal()
        }
    }
}

impl From<anyhow::Error> for PageError {
    fn from(error: anyhow::Error) -> Self {
        Self::of_files(&error)
    }
}

impl PageError {
    /// Creates the error of a store or files that cannot be read.
    pub(super) fn of_files(error: &anyhow::Error) -> Self {
        tracing::error!("the live page cannot read the store: {error:#}");
        Self {
            message: "the store cannot be read".to_owned(),
            ..Self::internal()
        }
    }

    /// Returns an answer that shows this error, with its status and, if the request may be repeated, `Retry-After`.
    pub(super) fn shown_as(&self, answer: impl IntoResponse) -> Response {
        let mut response = (self.status, answer).into_response();
        let pause = match self.status {
            StatusCode::TOO_MANY_REQUESTS => TOKEN_PAUSE_S,
            StatusCode::SERVICE_UNAVAILABLE => BUSY_PAUSE_S,
            _ => return response,
        };
        response.headers_mut().insert(header::RETRY_AFTER, pause.into());
        response
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let body = html! {
            h1 { (self.status.as_u16()) " " (self.status.canonical_reason().unwrap_or_default()) }
            p { (shown(&self.message, 500)) "." }
            p { (self.hint) }
        };
        self.shown_as(layout::page("Error", None, None, &body))
    }
}
