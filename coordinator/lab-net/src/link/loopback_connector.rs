//! Connects the coordinator to its embedded broker through a loopback TCP connection. Both ends are in this process, so no other process
//! can use it and it needs no encryption.

use std::{io, net::Ipv4Addr};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// Opens connections to the embedded broker.
#[derive(Debug, Clone)]
pub struct LoopbackConnector {
    inside: mpsc::Sender<TcpStream>,
}

impl LoopbackConnector {
    /// Creates a connector, and the channel on which the broker receives the other ends.
    pub fn new() -> (Self, mpsc::Receiver<TcpStream>) {
        let (inside, arrivals) = mpsc::channel(4);
        (Self { inside }, arrivals)
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// Returns an error when the loopback connection fails, or the broker is gone.
    pub async fn open(&self) -> io::Result<TcpStream> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let outside = TcpStream::connect(listener.local_addr()?).await?;
        let own = outside.local_addr()?;
        // Another process of this machine may have connected first, so the peer's port must be this connection's.
        let inside = loop {
            let (stream, from) = listener.accept().await?;
            if from == own {
                break stream;
            }
        };
        outside.set_nodelay(true)?;
        self.inside
            .send(inside)
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "the embedded broker is gone"))?;
        Ok(outside)
    }
}
