//! The devices that are connected to the embedded broker, each with a handle on its socket. The handle closes the connection of a removed
//! device.

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

/// The current connections of devices.
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
    /// Stores a handle on a device's connection and returns the connection's number.
    pub(super) fn add(&self, device: DeviceId, stream: &TcpStream) -> io::Result<u64> {
        let socket = Socket::from(stream.as_fd().try_clone_to_owned()?);
        let mut connections = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let number = connections.next;
        connections.next += 1;
        connections.open.insert(number, (device, socket));
        Ok(number)
    }

    /// Removes the handle of a connection that has ended.
    pub(super) fn remove(&self, number: u64) {
        let mut connections = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        connections.open.remove(&number);
    }

    /// Shuts down one connection. Its handler ends as after a network failure.
    pub(super) fn cut(&self, number: u64) {
        let connections = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((device, socket)) = connections.open.get(&number) {
            tracing::debug!(%device, "cut off: it has newer connections");
            // This fails only when the connection has already ended.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Shuts down the connections of devices that are no longer admitted. Their handlers end as after a network failure.
    pub(super) fn cut_off(&self, admission: &Admission) {
        let connections = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for (device, socket) in connections.open.values() {
            if !admission.admits(device) {
                tracing::info!(%device, "disconnected: the device was removed from the lab");
                // This fails only when the connection has already ended.
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
    }
}
