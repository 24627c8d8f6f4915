//! Access to the live page: its users and their permissions. [`gate`] decides about every request, by the
//! [`route_table`](super::route_table); a route that is not in the table is refused. Handlers of actions get an [`Operator`], which only
//! the gate makes.
//!
//! | listener | readers | actions |
//! |---|---|---|
//! | loopback without TLS | everybody | need an operator's token with each |
//! | with TLS and login | need a session or a bearer token | need an operator's session and its form |
//!
//! Sessions require TLS, because other servers of the same host would receive an insecure cookie.

mod cookie;
mod denials;
mod form;
mod gate;
mod guesses;
mod login;
mod operator;
mod permissions;
mod secret;
mod sessions;
mod token_follower;
mod token_list;
mod tokens;
mod visitor;

pub use self::tokens::{PageTokenError, issue};
pub(super) use self::{
    form::Form,
    gate::{Gate, guard},
    guesses::Peer,
    login::{log_in, log_out, show_login},
    operator::Operator,
    permissions::Access,
    visitor::{Controls, ReaderKey, Visitor},
};
