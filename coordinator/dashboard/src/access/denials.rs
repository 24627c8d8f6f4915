//! The errors of requests that the gate refuses. They never repeat the request.

use axum::http::StatusCode;

use super::permissions::TokenRefusal;
use crate::page_error::PageError;

/// Returns the error of a token that is not accepted.
pub(super) fn wrong_token(refusal: TokenRefusal) -> PageError {
    let (status, message) = match refusal {
        TokenRefusal::Unknown => (
            StatusCode::UNAUTHORIZED,
            "this token is unknown, has expired or was revoked",
        ),
        TokenRefusal::TooManyAttempts => (
            StatusCode::TOO_MANY_REQUESTS,
            "too many wrong tokens were sent from this address",
        ),
        TokenRefusal::Unreadable => return PageError::unreadable_tokens(),
        TokenRefusal::Internal => return PageError::internal(),
    };
    PageError {
        status,
        message: message.to_owned(),
        hint: "Wait some seconds and try again; `regatta dashboard token list` shows the tokens.",
    }
}

/// Returns the error of a form that does not come from the page.
pub(super) fn foreign() -> PageError {
    PageError {
        status: StatusCode::FORBIDDEN,
        message: "this form does not come from this page, or from before the login".to_owned(),
        hint: "Open the page again and repeat it there.",
    }
}

/// Returns the error of an action with a reader's token.
pub(super) fn only_reads() -> PageError {
    PageError {
        status: StatusCode::FORBIDDEN,
        message: "this token is a reader's; the action needs an operator's".to_owned(),
        hint: "The owner of the workspace creates one: `regatta dashboard token add NAME --role operator`.",
    }
}

/// Returns the error of a program's request without a token.
pub(super) fn without_token() -> PageError {
    PageError {
        status: StatusCode::UNAUTHORIZED,
        message: "this needs a token".to_owned(),
        hint: "Send `Authorization: Bearer TOKEN`, with a token of `regatta dashboard token add NAME`.",
    }
}
