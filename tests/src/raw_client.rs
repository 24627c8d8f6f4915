//! A raw MQTT 5 client that sends any bytes that a test needs, over TLS with any certificate. It can do what an honest client library would
//! not. It is blocking and for tests only.

use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    version::TLS13,
};

/// The reason code of a refused access.
pub const NOT_AUTHORIZED: u8 = 0x87;
/// The reason code of success.
pub const SUCCESS: u8 = 0;

const CONNACK: u8 = 2;
const PUBLISH: u8 = 3;
const PUBACK: u8 = 4;
const SUBACK: u8 = 9;

/// A certificate and its private key, in DER.
pub struct ClientIdentity {
    pub certificate: Vec<u8>,
    /// The private key, PKCS #8.
    pub key: Vec<u8>,
}

/// A connection.
pub struct RawClient {
    stream: StreamOwned<ClientConnection, TcpStream>,
    /// Messages that arrived while the client waited for another packet: topic and payload.
    heard: Vec<(String, Vec<u8>)>,
    next_id: u16,
}

impl RawClient {
    /// Connects to the broker at `port`, and trusts `authority`.
    ///
    /// # Errors
    /// Returns an error when the broker refuses. In TLS 1.3 the broker may refuse a certificate after this, at the first read.
    ///
    /// # Panics
    /// Panics when an argument is not a certificate.
    pub fn reach(port: u16, authority: &[u8], certificates: Option<&ClientIdentity>) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from(authority.to_vec()))
            .expect("an authority");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(roots);
        let config = match certificates {
            None => builder.with_no_client_auth(),
            Some(certificates) => builder
                .with_client_auth_cert(
                    vec![CertificateDer::from(certificates.certificate.clone())],
                    PrivateKeyDer::Pkcs8(certificates.key.clone().into()),
                )
                .expect("a certificate and its key"),
        };
        let name = ServerName::try_from("regatta-broker").expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        let socket = TcpStream::connect(("127.0.0.1", port))?;
        socket.set_read_timeout(Some(Duration::from_secs(10)))?;
        socket.set_write_timeout(Some(Duration::from_secs(10)))?;
        let mut stream = StreamOwned::new(connection, socket);
        stream.conn.complete_io(&mut stream.sock)?;
        Ok(Self {
            stream,
            heard: Vec::new(),
            next_id: 1,
        })
    }

    /// Sends a GET over HTTP instead of MQTT. Returns head and body of the response as text.
    ///
    /// # Errors
    /// Returns an error when the connection ends without a response.
    pub fn get(&mut self, address: &str, header: &str) -> io::Result<String> {
        self.request(address, &format!("{header}Connection: close\r\n"))?;
        let mut answer = Vec::new();
        let read = self.stream.read_to_end(&mut answer);
        if answer.is_empty() {
            read?;
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Sends a GET over HTTP and does not read the response.
    ///
    /// # Errors
    /// Returns an error when the connection has ended.
    pub fn request(&mut self, address: &str, header: &str) -> io::Result<()> {
        let request = format!("GET {address} HTTP/1.1\r\nHost: x\r\n{header}\r\n");
        self.stream.write_all(request.as_bytes())?;
        self.stream.flush()
    }

    /// Sends one frame and reads the answer. `frame` gets the keying material that both ends export under `label`.
    ///
    /// # Errors
    /// Returns an error when the connection ends without an answer.
    pub fn exchange(
        &mut self,
        label: &[u8],
        frame: impl FnOnce(&[u8; 32]) -> io::Result<Vec<u8>>,
    ) -> io::Result<Vec<u8>> {
        let derived = self
            .stream
            .conn
            .export_keying_material([0; 32], label, None)
            .map_err(io::Error::other)?;
        self.bytes(&frame(&derived)?)?;
        let mut answer = Vec::new();
        self.stream.read_to_end(&mut answer)?;
        if answer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(answer)
    }

    /// Sends CONNECT, with a last will on topic `will` if given. Returns the broker's reason code.
    ///
    /// # Errors
    /// Returns an error when the connection ends instead.
    pub fn connect(&mut self, client_id: &str, will: Option<&str>) -> io::Result<u8> {
        self.connect_with_property(client_id, will, "")
    }

    /// Does the same as [`Self::connect`], with a user property of the last will unless the value is empty.
    ///
    /// # Errors
    /// Returns an error when the connection ends instead.
    pub fn connect_with_property(
        &mut self,
        client_id: &str,
        will: Option<&str>,
        value: &str,
    ) -> io::Result<u8> {
        let mut body = text("MQTT");
        let flags = if will.is_some() { 0b0000_0110 } else { 0b0000_0010 };
        // Version 5, clean start, keep alive 60 s, no properties.
        body.extend([5, flags, 0, 60, 0]);
        body.extend(text(client_id));
        if let Some(topic) = will {
            body.extend(user_property(value));
            body.extend(text(topic));
            body.extend(text("gone"));
        }
        self.send(0x10, &body)?;
        Ok(self.answer(CONNACK)?.get(1).copied().unwrap_or(u8::MAX))
    }

    /// Sends PUBLISH with QoS 1. Returns the broker's reason code.
    ///
    /// # Errors
    /// Returns an error when the connection ends instead.
    pub fn publish(&mut self, topic: &str, payload: &[u8]) -> io::Result<u8> {
        self.say(topic, payload, false)?;
        let answer = self.answer(PUBACK)?;
        // A short PUBACK means success.
        Ok(answer.get(2).copied().unwrap_or(SUCCESS))
    }

    /// Sends PUBLISH with QoS 1, and does not wait for the answer.
    ///
    /// # Errors
    /// Returns an error when the connection has ended.
    pub fn say(&mut self, topic: &str, payload: &[u8], retain: bool) -> io::Result<()> {
        self.say_with_property(topic, payload, retain, "")
    }

    /// Does the same as [`Self::say`], with a user property of this value unless it is empty.
    ///
    /// # Errors
    /// Returns an error when the connection has ended.
    pub fn say_with_property(
        &mut self,
        topic: &str,
        payload: &[u8],
        retain: bool,
        value: &str,
    ) -> io::Result<()> {
        let mut body = text(topic);
        body.extend(self.number());
        body.extend(user_property(value));
        body.extend(payload);
        self.send(0x32 | u8::from(retain), &body)
    }

    /// Sends SUBSCRIBE with QoS 1. Returns the broker's reason code for the filter.
    ///
    /// # Errors
    /// Returns an error when the connection ends instead.
    pub fn subscribe(&mut self, filter: &str) -> io::Result<u8> {
        let mut body = self.number().to_vec();
        body.push(0);
        body.extend(text(filter));
        body.push(1);
        self.send(0x82, &body)?;
        Ok(self.answer(SUBACK)?.last().copied().unwrap_or(u8::MAX))
    }

    /// Returns the messages that arrived within `patience` or earlier: topic and payload.
    pub fn hear(&mut self, patience: Duration) -> Vec<(String, Vec<u8>)> {
        let _ = self.stream.sock.set_read_timeout(Some(patience));
        let begun = std::time::Instant::now();
        while begun.elapsed() < patience {
            match self.packet() {
                Ok((PUBLISH, body)) => self.keep(&body),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        let _ = self.stream.sock.set_read_timeout(Some(Duration::from_secs(10)));
        std::mem::take(&mut self.heard)
    }

    /// Sends arbitrary bytes.
    ///
    /// # Errors
    /// Returns an error when the connection has ended.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Returns whether the broker closes the connection within 10 s.
    pub fn is_cut_off(&mut self) -> bool {
        loop {
            match self.packet() {
                Ok(_) => {}
                Err(e) => {
                    return !matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
                }
            }
        }
    }

    fn number(&mut self) -> [u8; 2] {
        let number = self.next_id;
        self.next_id = self.next_id.checked_add(1).unwrap_or(1);
        number.to_be_bytes()
    }

    fn send(&mut self, first: u8, body: &[u8]) -> io::Result<()> {
        let mut packet = vec![first];
        packet.extend(variable_length(body.len()));
        packet.extend(body);
        self.bytes(&packet)
    }

    /// Waits for a packet of one type, and stores messages that arrive before it.
    fn answer(&mut self, kind: u8) -> io::Result<Vec<u8>> {
        loop {
            match self.packet()? {
                (found, body) if found == kind => return Ok(body),
                (PUBLISH, body) => self.keep(&body),
                _ => {}
            }
        }
    }

    fn packet(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut byte = [0];
        self.stream.read_exact(&mut byte)?;
        let kind = byte[0] >> 4;
        let (mut length, mut shift) = (0_usize, 0);
        loop {
            self.stream.read_exact(&mut byte)?;
            length |= usize::from(byte[0] & 0x7f) << shift;
            shift += 7;
            if byte[0] & 0x80 == 0 || shift > 21 {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((kind, body))
    }

    /// Stores a message. A QoS 1 message stays unacknowledged, which does not matter to a test.
    fn keep(&mut self, body: &[u8]) {
        let length = usize::from(u16::from_be_bytes([body[0], body[1]]));
        let topic = String::from_utf8_lossy(&body[2..2 + length]).into_owned();
        // Packet identifier (QoS 1) and an empty list of properties, as both brokers send them.
        let payload = body.get(2 + length + 3..).unwrap_or_default().to_vec();
        self.heard.push((topic, payload));
    }
}

/// Encodes properties: one user property of this value, or none if it is empty.
fn user_property(value: &str) -> Vec<u8> {
    if value.is_empty() {
        return vec![0];
    }
    let property = [&[0x26][..], &text("x"), &text(value)].concat();
    let mut properties = variable_length(property.len());
    properties.extend(property);
    properties
}

/// Encodes MQTT's Variable Byte Integer.
fn variable_length(mut length: usize) -> Vec<u8> {
    let mut digits = Vec::new();
    loop {
        let digit = (length % 128) as u8;
        length /= 128;
        digits.push(if length > 0 { digit | 0x80 } else { digit });
        if length == 0 {
            return digits;
        }
    }
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = u16::try_from(text.len())
        .expect("a short text")
        .to_be_bytes()
        .to_vec();
    bytes.extend(text.as_bytes());
    bytes
}
