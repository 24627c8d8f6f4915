//! The listener for enrolments: connections in, one request and one answer each. What is answered is judged by the desk.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use regatta_wire::{
    enrolment::{EXPORTER_LABEL, EXPORTER_LEN, EnrolAnswer, EnrolRequest, LARGEST_REQUEST},
    frame,
    message::Message as _,
};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{Desk, EnrolmentError};
use crate::{descriptors::DescriptorBudget, store::Store, waiting_room::WaitingRoom};

/// Takes enrolments until it is stopped.
pub(crate) struct Listener {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Listener {
    /// Listens.
    ///
    /// # Errors
    /// [`EnrolmentError`].
    pub(crate) async fn bind(listen: SocketAddr) -> Result<TcpListener, EnrolmentError> {
        TcpListener::bind(listen)
            .await
            .map_err(|source| match source.kind() {
                io::ErrorKind::AddrInUse => EnrolmentError::PortInUse(listen),
                _ => EnrolmentError::Listen {
                    address: listen,
                    source,
                },
            })
    }

    /// Begins to answer.
    pub(crate) fn start(
        listener: TcpListener,
        tls: Arc<ServerConfig>,
        desk: Desk,
        database: PathBuf,
        budget: DescriptorBudget,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let acceptor = TlsAcceptor::from(tls);
        let room = Arc::new(WaitingRoom::new(budget.handshakes));
        let task = tokio::spawn(accept(
            listener,
            acceptor,
            Arc::new(desk),
            Arc::new(database),
            room,
        ));
        Ok(Self { address, task })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more enrolments.
    pub(crate) fn stop(self) {
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    desk: Arc<Desk>,
    database: Arc<PathBuf>,
    room: Arc<WaitingRoom>,
) {
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("the enrolment cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if !room.lets_in(from.ip()) {
            continue;
        }
        let (acceptor, desk, database) = (acceptor.clone(), Arc::clone(&desk), Arc::clone(&database));
        let room = Arc::clone(&room);
        tokio::spawn(async move {
            if let Err(error) = room
                .admit(from.ip(), serve(stream, acceptor, desk, database))
                .await
            {
                tracing::debug!(%from, "an enrolment came to nothing: {error}");
            }
        });
    }
}

async fn serve(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    desk: Arc<Desk>,
    database: Arc<PathBuf>,
) -> io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let request = read_request(&mut stream).await?;
    let connection = stream
        .get_ref()
        .1
        .export_keying_material([0; EXPORTER_LEN], EXPORTER_LABEL, None)
        .map_err(io::Error::other)?;
    // SQLite waits for the disk: not on the network's threads.
    let answer = tokio::task::spawn_blocking(move || match Store::open(&database) {
        Ok(store) => desk.answer(&store, &request, &connection),
        Err(error) => {
            tracing::error!("an enrolment failed: {:#}", anyhow::Error::from(error));
            EnrolAnswer::Refused("the coordinator could not do it now; its log says why".to_owned())
        }
    })
    .await
    .map_err(io::Error::other)?;
    if let EnrolAnswer::Refused(why) = &answer {
        tracing::warn!("refused an enrolment: {why}");
    }
    let frame = answer.to_frame().map_err(io::Error::other)?;
    stream.write_all(&frame).await?;
    stream.shutdown().await
}

/// Reads one frame, never more than a request can be.
async fn read_request(stream: &mut TlsStream<TcpStream>) -> io::Result<EnrolRequest> {
    let mut bytes = vec![0; frame::HEADER_LEN];
    stream.read_exact(&mut bytes).await?;
    let length = frame::stated_length(&bytes).map_err(io::Error::other)?;
    if length + frame::HEADER_LEN > LARGEST_REQUEST {
        return Err(io::Error::other("the request is larger than any can be"));
    }
    bytes.resize(frame::HEADER_LEN + length, 0);
    stream
        .read_exact(bytes.get_mut(frame::HEADER_LEN..).unwrap_or_default())
        .await?;
    EnrolRequest::from_frame(&bytes).map_err(io::Error::other)
}
