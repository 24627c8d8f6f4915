//! An authenticated connection to a board, and commands over it.

use std::{
    io::{self, Read, Write as _},
    net::{IpAddr, TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use ssh2::MethodType;

use crate::{
    access::Access,
    board::{Board, END, LinkLost, Output},
    error::SshError,
    files::RemoteFiles,
    jump,
    known_hosts::{self, HostKey, KnownHosts, Trust},
    login,
    program::RemoteProgram,
    prompt::Prompt,
};

/// The longest wait for an answer while connecting.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest silence of a command: dpkg may wait for another dpkg, and a slow card takes time to write a package.
const SILENCE: Duration = Duration::from_secs(300);
/// The maximum output of a command in bytes, more than any script prints.
const MAX_OUTPUT: u64 = 4 << 20;

/// An authenticated connection.
pub struct Session {
    session: ssh2::Session,
    local: Option<IpAddr>,
}

impl Session {
    /// Connects, checks the host key and logs in, through the jump host if there is one.
    ///
    /// # Errors
    /// Returns [`SshError`].
    pub fn open(access: &Access, prompt: &dyn Prompt) -> Result<Self, SshError> {
        let known = KnownHosts::read().map_err(SshError::KnownHosts)?;
        Self::open_with(access, prompt, &known)
    }

    fn open_with(access: &Access, prompt: &dyn Prompt, known: &KnownHosts) -> Result<Self, SshError> {
        let network = |source| SshError::Network {
            to: format!("{} port {}", access.host, access.port),
            source,
        };
        let mut session = ssh2::Session::new().map_err(|e| SshError::protocol(access, "setting up", &e))?;
        session.set_timeout(milliseconds(PATIENCE));
        let local = match &access.jump {
            Some(jump) => {
                let through = Self::open_with(jump, prompt, known)?;
                let near = jump::open(through.session, &access.host, access.port).map_err(network)?;
                session.set_tcp_stream(near);
                None
            }
            None => {
                let socket = connect(&access.host, access.port).map_err(network)?;
                let local = socket.local_addr().map(|address| address.ip()).ok();
                session.set_tcp_stream(socket);
                local
            }
        };
        prefer(&session, &known.kinds(&access.host, access.port));
        session
            .handshake()
            .map_err(|e| SshError::protocol(access, "the handshake", &e))?;
        check_host(&session, access, prompt, known)?;
        login::log_in(&session, access, prompt)?;
        session.set_timeout(milliseconds(SILENCE));
        Ok(Self { session, local })
    }

    /// Returns this machine's address on the connection. `None` behind a jump host, because the board cannot use it there.
    pub const fn local_address(&self) -> Option<IpAddr> {
        self.local
    }

    /// Starts a program that is read and written while it runs.
    ///
    /// # Errors
    /// Returns [`LinkLost`], also when the server refuses.
    pub fn start(&self, doing: &str, line: &str) -> Result<RemoteProgram, LinkLost> {
        RemoteProgram::start(&self.session, line).map_err(|error| lost(doing, &error))
    }

    /// Opens the login's files.
    ///
    /// # Errors
    /// Returns [`LinkLost`], also when the server has no SFTP.
    pub fn files(&self) -> Result<RemoteFiles, LinkLost> {
        RemoteFiles::open(&self.session).map_err(|error| lost("opening SFTP", &error))
    }

    /// Limits the wait for an answer from now on.
    pub fn set_patience(&self, patience: Duration) {
        self.session.set_timeout(milliseconds(patience));
    }

    fn exchange(
        &self,
        line: &str,
        input: &mut dyn Read,
        sent: &mut dyn FnMut(u64),
    ) -> io::Result<(Output, bool)> {
        let mut channel = self.session.channel_session()?;
        channel.exec(line)?;
        let mut piece = vec![0; 32 * 1024];
        let mut total = 0;
        loop {
            let read = input.read(&mut piece)?;
            if read == 0 {
                break;
            }
            channel.write_all(piece.get(..read).unwrap_or_default())?;
            total += read as u64;
            sent(total);
        }
        channel.send_eof()?;
        let (mut out, mut err) = (Vec::new(), Vec::new());
        (&mut channel).take(MAX_OUTPUT).read_to_end(&mut out)?;
        channel.stderr().take(MAX_OUTPUT).read_to_end(&mut err)?;
        channel.close()?;
        channel.wait_close()?;
        let out = String::from_utf8_lossy(&out).into_owned();
        let whole = out.strip_suffix(&format!("\n{END}\n")).map(str::to_owned);
        let heard_out = whole.is_some();
        let output = Output {
            code: channel.exit_status()?,
            out: whole.unwrap_or(out),
            err: String::from_utf8_lossy(&err).into_owned(),
        };
        Ok((output, heard_out))
    }
}

impl Board for Session {
    fn run(
        &self,
        doing: &str,
        line: &str,
        input: &mut dyn Read,
        sent: &mut dyn FnMut(u64),
    ) -> Result<Output, LinkLost> {
        let lost = |why: String| LinkLost {
            doing: doing.to_owned(),
            why,
        };
        match self.exchange(line, input, sent) {
            // A finished script prints its end line. A failure before the script starts (sudo) does not, but has an exit code.
            Ok((output, heard_out)) if heard_out || output.code != 0 => Ok(output),
            Ok(_) => Err(lost("it ended before the response was complete".to_owned())),
            Err(error) => Err(lost(error.to_string())),
        }
    }
}

fn lost(doing: &str, error: &ssh2::Error) -> LinkLost {
    LinkLost {
        doing: doing.to_owned(),
        why: error.message().to_owned(),
    }
}

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Requests the key types that the host is known by, as OpenSSH does. RSA keys have two newer signature types as well.
fn prefer(session: &ssh2::Session, kinds: &[String]) {
    let supported = session.supported_algs(MethodType::HostKey).unwrap_or_default();
    let is_known = |name: &str| {
        kinds
            .iter()
            .any(|kind| kind == name || (kind == "ssh-rsa" && name.starts_with("rsa-sha2-")))
    };
    let requested: Vec<&str> = supported.into_iter().filter(|name| is_known(name)).collect();
    if !requested.is_empty() {
        // A host without any of these types is refused as changed, in the handshake or after it.
        let _ = session.method_pref(MethodType::HostKey, &requested.join(","));
    }
}

fn check_host(
    session: &ssh2::Session,
    access: &Access,
    prompt: &dyn Prompt,
    known: &KnownHosts,
) -> Result<(), SshError> {
    let Some((blob, _)) = session.host_key() else {
        return Err(SshError::Protocol {
            to: access.to_string(),
            doing: "the handshake",
            why: "the host showed no key".to_owned(),
        });
    };
    let key = HostKey { blob: blob.to_vec() };
    let (to, kind, fingerprint) = (access.to_string(), key.kind(), key.fingerprint());
    match known.judge(&access.host, access.port, &key) {
        Trust::Known => Ok(()),
        Trust::Revoked { place } => Err(SshError::Revoked { to, place }),
        Trust::Changed { place } => Err(SshError::Changed {
            to,
            place,
            kind,
            fingerprint,
            name: known_hosts::name_of(&access.host, access.port),
        }),
        Trust::Unknown if prompt.accepts(&to, &kind, &fingerprint) => {
            known_hosts::remember(&access.host, access.port, &key).map_err(SshError::KnownHosts)?;
            Ok(())
        }
        Trust::Unknown => Err(SshError::Unknown {
            to,
            kind,
            fingerprint,
        }),
    }
}
