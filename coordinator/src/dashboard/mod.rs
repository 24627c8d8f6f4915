//! The live page: what the lab does, in a browser on this machine. Pages are complete without JavaScript; a small script replaces what
//! changes. It only reads the store, and listens on loopback only, because it has no login.
//!
//! ```text
//! GET /                  the fleet; `sort`, `order`, `text`, `state`, `health` and `label` select and sort
//! GET /live/fleet?...    the same as server-sent events
//! GET /static/...        style, script and icon
//! ```

mod fleet_page;
mod fleet_query;
mod fleet_snapshot;
mod hub;
mod layout;
mod live;
mod outside_text;
mod page_error;
mod pieces;
mod protection;
mod routes;
mod server;
mod static_files;
mod view;

pub(crate) use server::{PageServer, PageServerError};
