//! Listens for browsers on loopback and serves the page over HTTP/1.1. Connections, headers and their time are limited.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
};
use tower_service::Service as _;

use super::{hub::Hub, protection::Port, routes::routes, view::Reader};
use crate::{
    descriptors::DescriptorBudget,
    port_holder::PortHolder,
    store::Store,
    workspace::{DEFAULT_PAGE, PageChoice, Workspace},
};

/// The longest time for receiving a request's header.
const HEADER_PATIENCE: Duration = Duration::from_secs(10);
/// The largest header of a request in bytes.
const LARGEST_HEADER: usize = 32 * 1024;

/// The reason why the live page cannot start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageServerError {
    /// Another program uses the port.
    #[error("the live page cannot be served at {0}: {1} has that port")]
    PortInUse(SocketAddr, PortHolder),
    /// The page cannot listen on the address.
    #[error("the live page cannot be served at {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// The running live page.
pub(crate) struct PageServer {
    address: SocketAddr,
    /// The program that has the default port, if the page is at another one.
    displaced: Option<PortHolder>,
    tasks: [JoinHandle<()>; 2],
}

impl PageServer {
    /// Listens where the workspace's configuration says, and serves until [`Self::stop`]. `None` when the page is off.
    ///
    /// # Errors
    /// Returns [`PageServerError`] when the configured address is not free, or an error of the store.
    pub(crate) async fn start(
        workspace: &Workspace,
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
        let store = Store::open(&workspace.database())?;
        store.page_is_served(&url(address))?;
        let hub = Hub::new(Reader::new(store, workspace.clone()));
        let router = routes(Arc::clone(&hub), Port(address.port()));
        let accepting = tokio::spawn(accept(listener, router, budget.page_connections));
        let following = tokio::spawn(hub.follow());
        Ok(Some(Self {
            address,
            displaced,
            tasks: [accepting, following],
        }))
    }

    /// The page's URL.
    pub(crate) fn url(&self) -> String {
        url(self.address)
    }

    /// The program that has the default port, if the page is at another one for that reason.
    pub(crate) const fn displaced(&self) -> Option<&PortHolder> {
        self.displaced.as_ref()
    }

    /// Stops serving, and closes every connection.
    pub(crate) fn stop(self) {
        for task in self.tasks {
            task.abort();
        }
    }
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}")
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

/// Accepts connections. They end with this task.
async fn accept(listener: TcpListener, router: axum::Router, most: usize) {
    let slots = Arc::new(Semaphore::new(most));
    let mut connections = JoinSet::new();
    loop {
        // The semaphore is never closed. Further browsers wait in the socket's queue.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        while connections.try_join_next().is_some() {}
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("the live page cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let router = router.clone();
        connections.spawn(async move {
            let answer = service_fn(move |request| {
                let answering = router.clone().call(request);
                async move { Ok::<_, Infallible>(answering.await.unwrap_or_else(|never| match never {})) }
            });
            let served = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_PATIENCE)
                .max_buf_size(LARGEST_HEADER)
                .serve_connection(TokioIo::new(stream), answer)
                .await;
            if let Err(error) = served {
                tracing::debug!(%from, "a connection to the live page ended: {error}");
            }
            drop(slot);
        });
    }
}
