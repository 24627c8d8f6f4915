//! The daemon: starts and stops broker, enrollment, link, ingest, dispatch, finish, campaigns and the live page together.
//!
//! `regatta serve` and `regatta quickstart` run the same daemon. It holds the workspace's lock while it runs.

mod security;

use std::{sync::Arc, thread::JoinHandle, time::Duration};

use anyhow::Context as _;
pub(crate) use security::server_hosts;

use regatta_types::BrokerAddress;
use tokio::sync::watch;

use self::security::Security;
use regatta_campaigns as campaigns;
use regatta_dashboard::PageServer;
use regatta_lab_net::{
    assets,
    broker::Broker,
    descriptors::DescriptorBudget,
    enrollment, fleet,
    link::{self, Link, Transport},
};
use regatta_lab_runs::{self as runs, ingest};
use regatta_lab_store::{
    change_notifier::ChangeNotifier,
    workspace::{BrokerChoice, Lock, Workspace, WorkspaceMoved},
};

/// The interval for checking that threads and workspace are there. It bounds the time in which a moved workspace is written to.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// The reason why a daemon cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DaemonFault {
    #[error("the coordinator's {0} thread ended by itself")]
    ThreadEnded(String),
    /// The workspace is no longer where it was.
    #[error("the coordinator stopped because {0}")]
    WorkspaceMoved(#[from] WorkspaceMoved),
}

/// A running daemon.
pub(crate) struct Daemon {
    workspace: Workspace,
    address: BrokerAddress,
    broker: Option<Broker>,
    enrollment: Option<enrollment::Listener>,
    assets: Option<assets::Server>,
    page: Option<PageServer>,
    link: Link,
    notifier: ChangeNotifier,
    judging: runs::JudgingMarks,
    threads: Vec<JoinHandle<()>>,
    _lock: Lock,
}

impl Daemon {
    /// Starts every part, or none.
    ///
    /// # Errors
    /// Returns an error when another daemon serves the workspace, or the store cannot be opened. The broker may also fail to listen or to
    /// be reached.
    pub(crate) async fn start(workspace: &Workspace) -> anyhow::Result<Self> {
        let lock = workspace.lock()?;
        // Creates the store before several parts open it.
        let store = workspace.store()?;
        runs::expect_runs_in_store(workspace, &store)?;
        if let Err(error) = runs::Removal::begin(workspace, &store) {
            tracing::error!("an interrupted removal of runs is not completed: {error:#}");
        }
        store.service().begin()?;
        let security = Security::of(workspace, &store)?;
        let budget = DescriptorBudget::raise(workspace.config().max_devices);
        let beside = match &workspace.config().broker {
            BrokerChoice::Embedded { .. } => regatta_lab_net::broker::INBOX_CAPACITY,
            BrokerChoice::External(_) => 0,
        };
        let (inbox, inbound) = link::inbox(beside);
        let (broker, address, way) = match &workspace.config().broker {
            BrokerChoice::Embedded { listen } => {
                let admission = Arc::clone(&security.admission);
                let broker =
                    Broker::start(*listen, security.acceptor()?, admission, inbox.clone(), budget).await?;
                let address = BrokerAddress::of(broker.address(), workspace.config().tls);
                let way = Transport::LoopbackConnector(broker.loopback_connector());
                (Some(broker), address, way)
            }
            BrokerChoice::External(address) => (None, address.clone(), security.transport_to(address)?),
        };
        let enrollment = security
            .take_enrollments(workspace, broker.as_ref().map(Broker::address), budget)
            .await?;
        let assets = security.serve_assets(workspace, budget).await?;
        let page = PageServer::start(workspace, security.page_tls(workspace)?, budget).await?;
        let link = Link::start(address.clone(), way, inbox).await?;
        tokio::spawn(follow_broker(workspace.clone(), link.connected()));
        let notifier = ChangeNotifier::new();
        let admission = &security.admission;
        let mut threads = vec![
            ingest::start(
                workspace,
                inbound,
                Arc::clone(admission),
                link.outbox(),
                notifier.clone(),
                budget.open_streams,
            )?,
            runs::start_dispatch(workspace, security.keys, link.outbox(), notifier.clone())?,
            campaigns::start_scheduler(workspace, notifier.clone())?,
            fleet::follow(store, Arc::clone(admission), notifier.clone())?,
        ];
        let judging = runs::JudgingMarks::new(&workspace.judging());
        threads.extend(runs::start_finish(workspace, &judging, &notifier)?);
        Ok(Self {
            workspace: workspace.clone(),
            address,
            broker,
            enrollment,
            assets,
            page,
            link,
            notifier,
            judging,
            threads,
            _lock: lock,
        })
    }

    /// Returns the broker's address for agents on this machine.
    pub(crate) const fn address(&self) -> &BrokerAddress {
        &self.address
    }

    /// Returns the address of the enrollment listener, in a lab with keys.
    pub(crate) fn enrollment(&self) -> Option<std::net::SocketAddr> {
        self.enrollment.as_ref().map(enrollment::Listener::address)
    }

    /// Returns the address of the asset server, in a lab with keys.
    pub(crate) fn assets(&self) -> Option<std::net::SocketAddr> {
        self.assets.as_ref().map(assets::Server::address)
    }

    /// Returns the live page, unless it is off.
    pub(crate) const fn page(&self) -> Option<&PageServer> {
        self.page.as_ref()
    }

    /// Waits until the daemon cannot go on, and returns the reason.
    pub(crate) async fn watch(&self) -> DaemonFault {
        loop {
            // First: a moved workspace ends the ingest, too.
            if let Err(moved) = self.workspace.expect_in_place() {
                return moved.into();
            }
            if let Some(ended) = self.threads.iter().find(|thread| thread.is_finished()) {
                return DaemonFault::ThreadEnded(ended.thread().name().unwrap_or("unnamed").to_owned());
            }
            tokio::time::sleep(WATCH_INTERVAL).await;
        }
    }

    /// Stops every part. No message is left half processed.
    ///
    /// # Errors
    /// Returns an error when a part has panicked.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        if let Some(enrollment) = self.enrollment {
            enrollment.stop();
        }
        if let Some(assets) = self.assets {
            assets.stop();
        }
        if let Some(page) = self.page {
            page.stop();
        }
        self.link.stop().await;
        // This ends the ingest too: its inbox closes with the link and the broker.
        if let Some(broker) = self.broker {
            broker.stop().await;
        }
        self.notifier.close();
        // A stop that takes too long is killed, which is not the fault of the run that is being judged.
        self.judging.end_all();
        let threads = self.threads;
        tokio::task::spawn_blocking(move || {
            threads.into_iter().try_for_each(|thread| {
                let name = thread.thread().name().unwrap_or("unnamed").to_owned();
                thread
                    .join()
                    .map_err(|_| anyhow::anyhow!("the coordinator's {name} thread panicked"))
            })
        })
        .await
        .context("cannot wait for the coordinator's threads")?
    }
}

/// Stores each loss and return of the broker, until the link ends.
async fn follow_broker(workspace: Workspace, mut connected: watch::Receiver<bool>) {
    while connected.changed().await.is_ok() {
        let is_lost = !*connected.borrow_and_update();
        let workspace = workspace.clone();
        let stored =
            tokio::task::spawn_blocking(move || workspace.store()?.service().set_broker_lost(is_lost)).await;
        if let Ok(Err(error)) = stored {
            tracing::error!(
                "the state of the broker was not stored: {:#}",
                anyhow::Error::from(error)
            );
        }
    }
}
