//! Listens for browsers and serves the page: on loopback over HTTP, elsewhere over TLS with a login.

use std::{io, net::SocketAddr, sync::Arc};

use rustls::ServerConfig;
use tokio::{net::TcpListener, task::JoinHandle};

use super::{access::Access, connections, hub::Hub, protection::HostNames, routes::routes, view::Reader};
use regatta_lab_net::{descriptors::DescriptorBudget, port_holder::PortHolder};
use regatta_lab_store::workspace::{DEFAULT_PAGE, PageChoice, Workspace};

/// The reason why the live page cannot start.
#[derive(Debug, thiserror::Error)]
pub enum PageServerError {
    /// Another program uses the port.
    #[error("cannot serve the live page at {0}: {1} has that port")]
    PortInUse(SocketAddr, PortHolder),
    /// The page cannot listen on the address.
    #[error("cannot serve the live page at {address}")]
    Listen {
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// The TLS of a page whose readers log in.
pub struct PageTls {
    /// The configuration, with the certificate.
    pub config: Arc<ServerConfig>,
    /// The names and addresses in the certificate.
    pub hosts: Vec<String>,
}

/// The running live page.
pub struct PageServer {
    url: String,
    /// Whether a login is required and no token exists.
    has_no_tokens: bool,
    /// The program that has the default port, if the page is at another one.
    displaced: Option<PortHolder>,
    tasks: [JoinHandle<()>; 2],
}

impl PageServer {
    /// Listens where the workspace's configuration says, and serves until [`Self::stop`]. `None` when the page is off.
    ///
    /// # Errors
    /// Returns [`PageServerError`] when the configured address is not free, or an error of the store.
    pub async fn start(
        workspace: &Workspace,
        tls: Option<PageTls>,
        budget: DescriptorBudget,
    ) -> anyhow::Result<Option<Self>> {
        let (listener, displaced) = match workspace.config().page {
            PageChoice::Off => return Ok(None),
            PageChoice::At(address) => (listen(address).await?, None),
            PageChoice::Default => match listen_by_default().await {
                Ok(listening) => listening,
                // Nobody requested the page, and devices are served without it.
                Err(error) => {
                    tracing::warn!("there is no live page: {:#}", anyhow::Error::from(error));
                    return Ok(None);
                }
            },
        };
        let address = listener.local_addr()?;
        let url = url(address, tls.is_some(), workspace);
        let hosts = match &tls {
            Some(tls) => HostNames::of(&tls.hosts, &url),
            None => HostNames::loopback(&url),
        };
        let open = || workspace.store();
        let store = open()?;
        store.service().set_page(&url)?;
        let has_no_tokens = tls.is_some() && store.page_tokens().all()?.is_empty();
        let hub = Hub::new(Reader::new(store, workspace.clone()));
        let access = Access::new(open()?, tls.is_some())?;
        let router = routes(Arc::clone(&hub), hosts, access);
        let accepting = match tls {
            Some(tls) => tokio::spawn(connections::accept_tls(
                listener,
                tls.config,
                router,
                url.clone(),
                budget.page_connections,
            )),
            None => tokio::spawn(connections::accept_plain(
                listener,
                router,
                budget.page_connections,
            )),
        };
        let tasks = [accepting, tokio::spawn(hub.follow())];
        Ok(Some(Self {
            url,
            has_no_tokens,
            displaced,
            tasks,
        }))
    }

    /// Returns the page's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns whether a login is required and no token exists.
    pub const fn has_no_tokens(&self) -> bool {
        self.has_no_tokens
    }

    /// Returns the program that has the default port, if the page is at another one for that reason.
    pub const fn displaced(&self) -> Option<&PortHolder> {
        self.displaced.as_ref()
    }

    /// Stops serving, and closes every connection.
    pub fn stop(self) {
        for task in self.tasks {
            task.abort();
        }
    }
}

/// Returns the page's URL. A listener on every address is known by the name of this machine.
fn url(address: SocketAddr, has_tls: bool, workspace: &Workspace) -> String {
    let host = &workspace.config().host;
    match (has_tls, address.ip().is_unspecified()) {
        (false, _) => format!("http://{address}"),
        (true, false) => format!("https://{address}"),
        (true, true) if host.contains(':') => format!("https://[{host}]:{}", address.port()),
        (true, true) => format!("https://{host}:{}", address.port()),
    }
}

/// Listens on the default port. Nobody chose it, so a second coordinator on this machine takes a free one; then the program that has the
/// default port is returned, too.
async fn listen_by_default() -> Result<(TcpListener, Option<PortHolder>), PageServerError> {
    match listen(DEFAULT_PAGE).await {
        Err(PageServerError::PortInUse(_, holder)) => {
            Ok((listen(SocketAddr::new(DEFAULT_PAGE.ip(), 0)).await?, Some(holder)))
        }
        listening => Ok((listening?, None)),
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, PageServerError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => PageServerError::PortInUse(address, PortHolder::of(address)),
            _ => PageServerError::Listen { address, source },
        })
}
