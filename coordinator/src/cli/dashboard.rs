//! `regatta dashboard token`: adds, lists and revokes the tokens of people and programs that use the live page.

use jiff::{SignedDuration, Timestamp};
use regatta_text::HumanDuration;
use regatta_types::ExitCode;
use serde::Serialize;
use serde_json::json;

use super::Context;
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_dashboard::{PageTokenError, issue_page_token};
use regatta_lab_store::{PageRole, PageToken, Store, workspace::Workspace};
use regatta_lab_views::wording;

/// Commands about the live page.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Add, list and revoke the tokens with which people and programs use the live page
    #[command(subcommand)]
    Token(TokenCommand),
}

/// Commands about tokens of the live page.
#[derive(Debug, clap::Subcommand)]
pub(super) enum TokenCommand {
    /// Add a token and print it; it is not shown again
    Add {
        /// The person or program that gets the token
        name: String,
        /// The role: a reader sees everything; an operator can also pause, retry and drain
        #[arg(long, default_value = "reader")]
        role: PageRole,
        /// How long the token is valid, such as 24h or 30d
        #[arg(long, value_name = "DURATION", default_value = "90d")]
        lifetime: HumanDuration,
    },
    /// List the tokens with their roles, expiry and last use
    List,
    /// Revoke a token and end its sessions
    Revoke {
        /// The token's name
        name: String,
    },
}

/// A token without its secret, as a JSON document.
#[derive(Serialize)]
struct DashboardTokenDocument<'a> {
    name: &'a str,
    role: PageRole,
    state: &'static str,
    created: &'a str,
    expires: String,
    last_used: Option<&'a str>,
    revoked: Option<&'a str>,
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let Command::Token(command) = command;
    match command {
        TokenCommand::Add { name, role, lifetime } => {
            let lifetime = SignedDuration::from_millis(i64::try_from(lifetime.millis()).unwrap_or(i64::MAX));
            add(name, *role, lifetime, context, &workspace, &store)?;
        }
        TokenCommand::List => list(context, &store)?,
        TokenCommand::Revoke { name } => revoke(name, context, &store)?,
    }
    Ok(ExitCode::Success)
}

fn add(
    name: &str,
    role: PageRole,
    lifetime: SignedDuration,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    let made = issue_page_token(store, name, role, lifetime).map_err(|error| {
        let hint = matches!(error, PageTokenError::Taken(_)).then(|| {
            format!("`regatta dashboard token revoke {name}` revokes it; then a new one can have the name")
        });
        Failure::of_kind(error.kind(), error).optional_hint(hint)
    })?;
    let expires = made.expires.to_string();
    let document = json!({ "name": name, "role": role, "token": made.token, "expires": expires });
    context.print(&document, || {
        let note = match (role, workspace.config().page_login) {
            (PageRole::Reader, false) => {
                "\nthe live page is on loopback without a login, so a reader needs no token"
            }
            _ => "",
        };
        format!(
            "token of {name}, {role} until {}; it is not shown again:\n  {}{note}",
            wording::time(&expires),
            made.token
        )
    })?;
    Ok(())
}

fn list(context: &Context, store: &Store) -> Result<(), Failure> {
    let tokens = store.page_tokens().all()?;
    let now = Timestamp::now();
    let document = |token: &PageToken| {
        serde_json::to_value(DashboardTokenDocument {
            name: &token.name,
            role: token.role,
            state: token.state(now),
            created: &token.created,
            expires: token.expires.to_string(),
            last_used: token.last_used.as_deref(),
            revoked: token.revoked.as_deref(),
        })
    };
    let documents = tokens.iter().map(document).collect::<Result<Vec<_>, _>>()?;
    context.print(&json!({ "tokens": documents }), || {
        tables::page_tokens(&tokens, now)
    })?;
    Ok(())
}

fn revoke(name: &str, context: &Context, store: &Store) -> Result<(), Failure> {
    if !store.page_tokens().revoke(name)? {
        return Err(Failure::misuse(format!("there is no token of `{name}`"))
            .hint("`regatta dashboard token list` shows them"));
    }
    context.print(&json!({ "name": name, "revoked": true }), || {
        format!("the token of {name} is revoked; its sessions end within a second")
    })?;
    Ok(())
}
