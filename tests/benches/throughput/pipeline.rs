//! A pipeline that a careful user would build from parts. A publisher sends the file to mosquitto over TLS 1.3, in chunks of 64
//! KiB at QoS 1, and a subscriber writes, hashes and fsyncs them. It has our client library and as few fsyncs as ours, one for
//! every 8 MiB. Without its own acknowledgements, a restart of the broker would lose chunks.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    net::IpAddr,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Instant,
};

use regatta_tests::{Mosquitto, Process, eventually, free_port, regatta, succeed_output};
use rumqttc::{
    AsyncClient, Broker, Event, EventLoop, IncomingPacketSizeLimit, MqttOptions, Packet, PublishOptions, QoS,
    SubscribeFilter,
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::{AnyError, memory::Reserve};

const CHUNK: usize = 64 * 1024;
const FLUSH_EVERY: u64 = 8 << 20;
const TOPIC: &str = "log";
const HOST: &str = "127.0.0.1";

/// A broker, and the directory of its certificates.
pub(crate) struct Pipeline {
    directory: PathBuf,
    broker: Mosquitto,
}

impl Pipeline {
    /// Starts mosquitto with a certificate of a lab's authority. `None` where it is not installed.
    pub(crate) fn start(parent: &Path) -> Result<Option<Self>, AnyError> {
        let workspace = parent.join("pipeline");
        let mut init = Command::new(regatta());
        init.arg("--workspace")
            .arg(&workspace)
            .args(["init", "--host", HOST, "--broker", "mosquitto"]);
        let _ = succeed_output(&mut init);
        let (directory, port) = (workspace.join("mosquitto"), free_port());
        let certificates = directory.display();
        let config = format!(
            "user root\nlistener {port} {HOST}\ncafile {certificates}/ca.pem\ncertfile {certificates}/server.pem\n\
             keyfile {certificates}/server.key\ntls_version tlsv1.3\nallow_anonymous true\npersistence false\n\
             max_inflight_messages 64\nmax_queued_messages 0\nset_tcp_nodelay true\n"
        );
        fs::write(directory.join("mosquitto.conf"), config)?;
        let broker = Mosquitto::start_with(&directory, port);
        Ok(broker.map(|broker| Self { directory, broker }))
    }

    /// Transfers `log` once. Returns the seconds from the publisher's start until all of it is written, hashed and flushed.
    pub(crate) fn deliver(&self, log: &Path) -> Result<f64, AnyError> {
        let copy = self.directory.join("copy");
        let _ = fs::remove_file(&copy);
        let printed = self.directory.join("subscriber.log");
        let _ = fs::remove_file(&printed);
        let bytes = fs::metadata(log)?.len().to_string();
        let mut subscriber = Process::start(self.side("--subscribe")?.arg(&copy).arg(bytes), &printed);
        eventually("the subscriber", 20, || subscriber.output().contains("ready"));
        let _reserve = Reserve::for_copy(copy.clone(), fs::metadata(log)?.len(), &self.directory)?;
        let begin = Instant::now();
        let _publisher = Process::start(
            self.side("--publish")?.arg(log),
            &self.directory.join("publisher.log"),
        );
        while subscriber.is_running() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let took = begin.elapsed().as_secs_f64();
        let hash = crate::ours::sha256(log)?;
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        if !subscriber.output().contains(&hash) {
            return Err(format!("the pipeline lost something: {}", subscriber.output()).into());
        }
        fs::remove_file(&copy)?;
        Ok(took)
    }

    /// This program as one of the two sides.
    fn side(&self, side: &str) -> Result<Command, AnyError> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(side)
            .arg(self.broker.port.to_string())
            .arg(self.directory.join("ca.pem"));
        Ok(command)
    }
}

/// Plays a side when this process was started as one: `--publish PORT CA FILE` or `--subscribe PORT CA COPY BYTES`.
pub(crate) fn play(arguments: &[String]) -> Option<Result<(), AnyError>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Some(Err(error.into())),
    };
    match arguments {
        [_, side, port, ca, file] if side == "--publish" => {
            Some(runtime.block_on(publish(port, ca, Path::new(file))))
        }
        [_, side, port, ca, copy, bytes] if side == "--subscribe" => {
            Some(runtime.block_on(subscribe(port, ca, Path::new(copy), bytes)))
        }
        _ => None,
    }
}

async fn publish(port: &str, ca: &str, file: &Path) -> Result<(), AnyError> {
    let (client, mut events) = connect("publisher", port, ca)?;
    let mut file = File::open(file)?;
    let chunks = file.metadata()?.len().div_ceil(CHUNK as u64);
    let sending = tokio::spawn(async move {
        let mut left = chunks;
        while left > 0 {
            let mut piece = Vec::with_capacity(CHUNK);
            io::Read::by_ref(&mut file)
                .take(CHUNK as u64)
                .read_to_end(&mut piece)?;
            let sent = client
                .publish(TOPIC, piece, PublishOptions::new(QoS::AtLeastOnce))
                .await;
            sent.map_err(io::Error::other)?;
            left -= 1;
        }
        // Dropped, the client would end its connection before all is sent.
        Ok::<_, io::Error>(client)
    });
    let mut acknowledged = 0;
    while acknowledged < chunks {
        if let Event::Incoming(Packet::PubAck(_)) = events.poll().await? {
            acknowledged += 1;
        }
    }
    sending.await??;
    Ok(())
}

async fn subscribe(port: &str, ca: &str, copy: &Path, bytes: &str) -> Result<(), AnyError> {
    let (client, mut events) = connect("subscriber", port, ca)?;
    let bytes: u64 = bytes.parse()?;
    client.try_subscribe_many([SubscribeFilter::new(TOPIC, QoS::AtLeastOnce)])?;
    let (mut file, mut hasher) = (File::create(copy)?, Sha256::new());
    let (mut written, mut flushed) = (0_u64, 0_u64);
    while written < bytes {
        match events.poll().await? {
            Event::Incoming(Packet::SubAck(_)) => println!("ready"),
            Event::Incoming(Packet::Publish(publish)) => {
                file.write_all(&publish.payload)?;
                hasher.update(&publish.payload);
                written += publish.payload.len() as u64;
                if written - flushed >= FLUSH_EVERY {
                    file.sync_data()?;
                    flushed = written;
                }
            }
            _ => {}
        }
    }
    file.sync_all()?;
    let hash: String = hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    println!("{hash}");
    Ok(())
}

fn connect(name: &str, port: &str, ca: &str) -> Result<(AsyncClient, EventLoop), AnyError> {
    let port: u16 = port.parse()?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca)?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let mut options = MqttOptions::new(name, Broker::tcp(HOST, port));
    options
        .set_outgoing_inflight_upper_limit(16)
        .set_receive_maximum(Some(64))
        .set_max_packet_size(Some(1 << 20))
        .set_incoming_packet_size_limit(IncomingPacketSizeLimit::Bytes(1 << 20));
    options.set_socket_connector(move |_host, _options| {
        let config = Arc::clone(&config);
        async move {
            let socket = TcpStream::connect((HOST, port)).await?;
            socket.set_nodelay(true)?;
            let address: IpAddr = HOST.parse().map_err(io::Error::other)?;
            TlsConnector::from(config)
                .connect(ServerName::IpAddress(address.into()), socket)
                .await
        }
    });
    Ok(AsyncClient::builder(options).capacity(4).build())
}
