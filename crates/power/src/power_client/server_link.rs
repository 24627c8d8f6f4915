//! The connection to the server: commands with their replies, files, and the comparison of clocks.

use std::{
    io,
    net::{TcpStream, ToSocketAddrs as _},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::{error::ClientError, options::ClientOptions};
use crate::{
    ntp,
    protocol::{
        CLIENT_MAGIC, OK, SERVER_MAGIC,
        connection::{Connection, ConnectionError, LineLimits},
        description::{Description, Message},
        file_transfer::receive_file,
        own_program::OwnProgram,
        session_log::SessionLog,
        timestamps::now,
    },
};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a reply may take: the server starts PTDaemon in up to 30 s, waits 10 s, and reads the samples of a day.
const REPLY: Duration = Duration::from_secs(300);
/// The longest reply; the protocol's have about 100 bytes.
const MAX_LINE: usize = 4 << 10;

/// A connected server.
pub(super) struct ServerLink<'a> {
    connection: Connection,
    description: Description,
    log: SessionLog,
    ntp: &'a str,
    interrupted: &'a AtomicBool,
}

impl<'a> ServerLink<'a> {
    /// Connects and introduces this client.
    pub(super) fn connect(
        options: &'a ClientOptions,
        program: &OwnProgram,
        log: &SessionLog,
        interrupted: &'a AtomicBool,
    ) -> Result<Self, ClientError> {
        let connection = connect(&options.address, options.port).map_err(|source| ClientError::Connect {
            address: format!("{}:{}", options.address, options.port),
            source,
        })?;
        let mut link = Self {
            connection,
            description: Description::new(program),
            log: log.clone(),
            ntp: &options.ntp,
            interrupted,
        };
        match link.query(CLIENT_MAGIC)? {
            reply if reply == SERVER_MAGIC => Ok(link),
            reply => Err(ClientError::Handshake(reply)),
        }
    }

    pub(super) fn description(&mut self) -> &mut Description {
        &mut self.description
    }

    pub(super) fn log(&self) -> &SessionLog {
        &self.log
    }

    /// Sends a command, and returns the reply.
    pub(super) fn query(&mut self, command: &str) -> Result<String, ClientError> {
        let limits = LineLimits {
            length: MAX_LINE,
            silence: Some(REPLY),
        };
        self.log.info(&format!("command '{command}'"));
        let sent = now();
        self.connection.send(command)?;
        let interrupted = self.interrupted;
        let reply = self.connection.receive(limits, &mut || watch(interrupted))?;
        let message = Message {
            cmd: command.to_owned(),
            cmd_time: sent,
            reply: reply.clone(),
            reply_time: now(),
        };
        self.log.info(&format!("reply {reply:?}"));
        self.description.message(message);
        Ok(reply)
    }

    /// Sends a command that must succeed.
    pub(super) fn order(&mut self, command: &str) -> Result<(), ClientError> {
        let command = command.to_owned();
        match self.query(&command)? {
            reply if reply == OK => Ok(()),
            reply => Err(ClientError::Refused { command, reply }),
        }
    }

    /// Fetches a file.
    pub(super) fn fetch(&mut self, command: &str, path: &Path) -> Result<(), ClientError> {
        self.log.info(&format!("command '{command}'"));
        self.connection.send(command)?;
        receive_file(&mut self.connection, path).map_err(|source| ClientError::Fetch {
            path: path.to_owned(),
            source,
        })
    }

    /// Compares this machine's clock with NTP and with the server's.
    pub(super) fn compare_clocks(&mut self) -> Result<(), ClientError> {
        let server = self.ntp.to_owned();
        let offset = ntp::offset(&server);
        let offset = offset.map_err(|source| ClientError::Ntp {
            server: server.clone(),
            source,
        })?;
        self.log
            .info(&format!("NTP server {server}: offset {offset:+.3} s"));
        expect_near(&format!("the NTP server {server}"), offset)?;
        self.compare_with_server()
    }

    /// Compares this machine's clock with the server's. The difference includes the duration of the request.
    pub(super) fn compare_with_server(&mut self) -> Result<(), ClientError> {
        let command = "time";
        let before = now();
        let reply = self.query(command)?;
        let after = now();
        let Some(time) = reply.parse::<f64>().ok().filter(|time| time.is_finite()) else {
            let command = command.to_owned();
            return Err(ClientError::Refused { command, reply });
        };
        let (first, last) = (time - before, time - after);
        self.log.info(&format!(
            "the server's clock: {last:+.3} s to {first:+.3} s from this one"
        ));
        let farther = if first.abs() > last.abs() { first } else { last };
        expect_near("the power server", farther)
    }

    /// Fails when the server has closed the connection, or when the user ends the session.
    pub(super) fn check(&self) -> Result<(), ClientError> {
        watch(self.interrupted)?;
        match self.connection.is_closed() {
            true => Err(ConnectionError::Closed.into()),
            false => Ok(()),
        }
    }
}

fn watch(interrupted: &AtomicBool) -> Result<(), ClientError> {
    match interrupted.load(Ordering::Relaxed) {
        true => Err(ClientError::Interrupted),
        false => Ok(()),
    }
}

fn expect_near(other: &str, seconds: f64) -> Result<(), ClientError> {
    match seconds.abs() < ntp::MAX_OFFSET.as_secs_f64() {
        true => Ok(()),
        false => Err(ClientError::Clock {
            other: other.to_owned(),
            milliseconds: seconds.abs() * 1e3,
        }),
    }
}

/// Connects to the first address of the host that answers.
fn connect(host: &str, port: u16) -> io::Result<Connection> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => return Connection::new(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
