//! The daemon's security configuration. Keys are loaded once and turned into the settings of each part. Without keys, every part works
//! unencrypted, by default on this machine only.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context as _;

use regatta_types::BrokerAddress;

use regatta_dashboard::PageTls;
use regatta_lab_net::{
    assets,
    broker::Acceptor,
    descriptors::DescriptorBudget,
    enrollment::{CoordinatorAddresses, EnrollmentService, Listener},
    fleet::Admission,
    keys::{self, Keys, PAGE_CERTIFICATE, PageAuthority},
    link::Transport,
};
use regatta_lab_store::{
    Store,
    workspace::{PageChoice, Workspace},
};

/// The lab's keys, if it has any, and the admission.
pub(super) struct Security {
    pub(super) keys: Option<Arc<Keys>>,
    pub(super) admission: Arc<Admission>,
    hosts: Vec<String>,
}

impl Security {
    /// Loads the workspace's keys and members.
    pub(super) fn of(workspace: &Workspace, store: &Store) -> anyhow::Result<Self> {
        let config = workspace.config();
        let keys = if config.tls {
            let keys = Keys::load(&workspace.keys()).context("cannot load the TLS keys of this workspace")?;
            Some(Arc::new(keys))
        } else {
            None
        };
        Ok(Self {
            keys,
            admission: Arc::new(Admission::of(store, config.tls)?),
            hosts: server_hosts(&config.host),
        })
    }

    /// Returns the embedded broker's method of accepting connections.
    pub(super) fn acceptor(&self) -> anyhow::Result<Acceptor> {
        Ok(match &self.keys {
            Some(keys) => Acceptor::Tls {
                config: keys::broker_server(keys, &self.hosts)?,
                coordinator_key: keys.coordinator_public_key(),
            },
            None => Acceptor::Plain,
        })
    }

    /// Returns the transport to an external broker.
    pub(super) fn transport_to(&self, address: &BrokerAddress) -> anyhow::Result<Transport> {
        if !address.tls && !address.is_loopback() {
            tracing::warn!(%address, "unencrypted MQTT: anyone on the network can read and forge messages");
        }
        Ok(match &self.keys {
            Some(keys) if address.tls => Transport::Tls(keys::client(keys)?),
            _ => Transport::Plain,
        })
    }

    /// Returns the TLS of the live page, where its readers log in.
    pub(super) fn page_tls(&self, workspace: &Workspace) -> anyhow::Result<Option<PageTls>> {
        let config = workspace.config();
        if self.keys.is_none() || !config.page_login {
            return Ok(None);
        }
        let mut hosts = self.hosts.clone();
        if let PageChoice::At(address) = config.page
            && !address.ip().is_unspecified()
        {
            add_host(&mut hosts, &address.ip().to_string());
        }
        let (authority, is_again) = PageAuthority::open(&workspace.keys(), &hosts)?;
        if is_again {
            let certificate = workspace.keys().join(PAGE_CERTIFICATE);
            tracing::warn!(
                "browsers must import {} again, because this machine has other names or the former certificate ends soon",
                certificate.display()
            );
        }
        Ok(Some(PageTls {
            config: authority.server(&hosts)?,
            hosts,
        }))
    }

    /// Starts the asset server, if the lab has keys and is configured for it.
    pub(super) async fn serve_assets(
        &self,
        workspace: &Workspace,
        budget: DescriptorBudget,
    ) -> anyhow::Result<Option<assets::Server>> {
        let (Some(keys), Some(listen)) = (&self.keys, workspace.config().assets_listen) else {
            return Ok(None);
        };
        let tls = keys::broker_server(keys, &self.hosts)?;
        let admission = Arc::clone(&self.admission);
        let server =
            assets::Server::start(listen, tls, admission, assets::AssetStore::of(workspace), budget).await?;
        tracing::debug!(address = %server.address(), "serving assets");
        Ok(Some(server))
    }

    /// Starts the enrollment listener, if the lab has keys.
    pub(super) async fn take_enrollments(
        &self,
        workspace: &Workspace,
        broker: Option<SocketAddr>,
        budget: DescriptorBudget,
    ) -> anyhow::Result<Option<Listener>> {
        let Some(keys) = &self.keys else {
            return Ok(None);
        };
        let config = workspace.config();
        let listener = Listener::bind(config.enroll_listen).await?;
        let addresses = CoordinatorAddresses {
            broker: config.broker_for_devices(broker).to_string(),
            enrollment: host_and_port(&config.host, listener.local_addr()?.port()),
        };
        let store = workspace.store()?;
        let service =
            EnrollmentService::new(Arc::clone(keys), Arc::clone(&self.admission), addresses, store)?;
        let tls = keys::enrollment_server(keys, &self.hosts)?;
        Ok(Some(Listener::start(listener, tls, service, budget)?))
    }
}

/// Returns the host names for a server certificate of this lab, besides the name that devices request.
pub(crate) fn server_hosts(host: &str) -> Vec<String> {
    let mut hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    add_host(&mut hosts, host);
    hosts
}

fn add_host(hosts: &mut Vec<String>, host: &str) {
    if !hosts.iter().any(|known| known == host) {
        hosts.push(host.to_owned());
    }
}

fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}
