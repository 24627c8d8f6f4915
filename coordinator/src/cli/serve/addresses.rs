//! The addresses of a serving coordinator: as text for people, and as a document, which the background process also sends to the command that started
//! it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::daemon::Daemon;
use regatta_lab_net::keys::PAGE_CERTIFICATE;
use regatta_lab_store::workspace::{DEFAULT_PAGE, Workspace};

/// The services of a coordinator and their addresses.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Addresses {
    workspace: PathBuf,
    process: u32,
    broker: String,
    enrollment: Option<String>,
    assets: Option<String>,
    page: Option<PageAddress>,
    /// The name or address at which devices reach this machine.
    host: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PageAddress {
    url: String,
    /// The program that occupies the default port.
    displaced_by: Option<String>,
    /// The certificate that browsers need if readers have to log in.
    certificate: Option<PathBuf>,
    has_no_tokens: bool,
}

impl Addresses {
    pub(super) fn of(daemon: &Daemon, workspace: &Workspace) -> Self {
        let config = workspace.config();
        let page = daemon.page().map(|page| PageAddress {
            url: page.url().to_owned(),
            displaced_by: page.displaced().map(ToString::to_string),
            certificate: config.page_login.then(|| workspace.keys().join(PAGE_CERTIFICATE)),
            has_no_tokens: page.has_no_tokens(),
        });
        Self {
            workspace: workspace.root().to_owned(),
            process: std::process::id(),
            broker: daemon.address().to_string(),
            enrollment: daemon.enrollment().map(|address| address.to_string()),
            assets: daemon.assets().map(|address| format!("https://{address}")),
            page,
            host: daemon.enrollment().map(|_| config.host.clone()),
        }
    }

    /// Returns the process id.
    pub(super) const fn process(&self) -> u32 {
        self.process
    }

    /// Describes each service with its address.
    pub(super) fn text(&self) -> String {
        let mut lines = vec![format!("serving {} at {}", self.workspace.display(), self.broker)];
        if let Some(address) = &self.enrollment {
            lines.push(format!(
                "devices enroll at {address}, with a token of `regatta device add`"
            ));
        }
        if let Some(address) = &self.assets {
            lines.push(format!("devices download models and data from {address}"));
        }
        lines.extend(self.page.iter().flat_map(PageAddress::lines));
        if let Some(host) = &self.host {
            lines.push(format!("devices reach this machine as {host}"));
        }
        lines.join("\n")
    }
}

impl PageAddress {
    fn lines(&self) -> Vec<String> {
        let why = self.displaced_by.as_ref().map_or_else(String::new, |holder| {
            format!(", because {holder} has {DEFAULT_PAGE}")
        });
        let mut lines = vec![format!("live page at {}{why}", self.url)];
        if let Some(certificate) = &self.certificate {
            lines.push(format!(
                "browsers trust it once they import {}",
                certificate.display()
            ));
        }
        if self.has_no_tokens {
            lines.push(
                "nobody can log in yet: add a token with `regatta dashboard token add NAME`".to_owned(),
            );
        }
        lines
    }
}
