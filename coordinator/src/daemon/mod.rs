//! The daemon: broker, link, ingest, dispatch and finish, started together and ended together.
//!
//! `regatta serve` and `regatta quickstart` run the same daemon. It holds the workspace's lock while it lives.

mod bell;

use std::{thread::JoinHandle, time::Duration};

use anyhow::Context as _;
pub(crate) use bell::Bell;

use crate::{
    broker::Broker,
    ingest,
    link::{Address, Link},
    runs,
    store::Store,
    workspace::{BrokerChoice, Lock, Workspace},
};

/// A running daemon.
pub(crate) struct Daemon {
    address: Address,
    broker: Option<Broker>,
    link: Link,
    bell: Bell,
    threads: Vec<JoinHandle<()>>,
    _lock: Lock,
}

impl Daemon {
    /// Starts every part, or none.
    ///
    /// # Errors
    /// When another daemon serves the workspace, the broker cannot listen or be reached, or the store cannot be opened.
    pub(crate) async fn start(workspace: &Workspace) -> anyhow::Result<Self> {
        let lock = workspace.lock()?;
        // Makes the store, and brings an older one up to date, before several parts open it.
        Store::open(&workspace.database())?.forget_who_is_online()?;
        let (broker, address) = match &workspace.config().broker {
            BrokerChoice::Embedded { listen } => {
                let broker = Broker::start(*listen).await?;
                let address = Address::from(broker.address());
                (Some(broker), address)
            }
            BrokerChoice::External(address) => (None, address.clone()),
        };
        let (link, inbound) = Link::start(address.clone()).await?;
        let bell = Bell::new();
        let threads = vec![
            ingest::start(workspace, inbound, link.outbox(), bell.clone())?,
            runs::start_dispatch(workspace, link.outbox(), bell.clone())?,
            runs::start_finish(workspace, bell.clone())?,
        ];
        Ok(Self {
            address,
            broker,
            link,
            bell,
            threads,
            _lock: lock,
        })
    }

    /// The broker's address, for agents of this machine.
    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    /// Waits for ever while every part does its work; returns the name of one that has ended by itself.
    pub(crate) async fn watch(&self) -> String {
        loop {
            if let Some(ended) = self.threads.iter().find(|thread| thread.is_finished()) {
                return ended.thread().name().unwrap_or("unnamed").to_owned();
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Ends every part: no message is half dealt with afterwards.
    ///
    /// # Errors
    /// When a part had panicked.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        // Ends the ingest too: its inbox closes.
        self.link.stop().await;
        self.bell.take_down();
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
        .context("cannot wait for the coordinator's threads")??;
        if let Some(broker) = self.broker {
            broker.stop().await;
        }
        Ok(())
    }
}
