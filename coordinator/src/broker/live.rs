//! The devices that are connected to the embedded broker now, each with a handle on its socket, so that one that is
//! removed can be cut off.

use std::{
    collections::BTreeMap,
    io,
    net::{Shutdown, TcpStream as Socket},
    os::fd::AsFd as _,
    sync::{Mutex, PoisonError},
};

use regatta_types::DeviceId;
use tokio::net::TcpStream;

use crate::fleet::Admission;

/// Live connections of devices.
#[derive(Debug, Default)]
pub(super) struct Live {
    inner: Mutex<Connections>,
}

#[derive(Debug, Default)]
struct Connections {
    next: u64,
    open: BTreeMap<u64, (DeviceId, Socket)>,
}

impl Live {
    /// Keeps a handle on a device's connection; the returned number names it.
    pub(super) fn add(&self, device: DeviceId, stream: &TcpStream) -> io::Result<u64> {
        let socket = Socket::from(stream.as_fd().try_clone_to_owned()?);
        let mut connections = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let number = connections.next;
        connections.next += 1;
        connections.open.insert(number, (device, socket));
        Ok(number)
    }

    /// The connection has ended.
    pub(super) fn remove(&self, number: u64) {
        let mut connections = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        connections.open.remove(&number);
    }

    /// Cuts off one connection. Its handler ends as if the network had failed.
    pub(super) fn cut(&self, number: u64) {
        let connections = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((device, socket)) = connections.open.get(&number) {
            tracing::debug!(%device, "cut off: it has newer connections");
            // Fails only when the connection has ended by itself.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Cuts off every device that is not admitted any more. Its handler ends as if the network had failed.
    pub(super) fn cut_off(&self, admission: &Admission) {
        let connections = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for (device, socket) in connections.open.values() {
            if !admission.admits(device) {
                tracing::info!(%device, "cut off: it is no longer let in");
                // Fails only when the connection has ended by itself.
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
    }
}
