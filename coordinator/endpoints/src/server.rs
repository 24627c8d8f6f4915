//! A look at the server before a run: does it answer, does it serve the model, and which program is it?

use std::{
    io::{self, Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use serde::Deserialize;

use crate::EndpointsError;

const PATIENCE: Duration = Duration::from_secs(10);
/// The maximum size of an answer in bytes.
const MAX_ANSWER: u64 = 4 << 20;

/// What a server says about itself.
#[derive(Debug)]
pub(crate) struct Server {
    /// The `Server` header of its answers.
    pub(crate) program: Option<String>,
    /// The name of the model.
    pub(crate) model: String,
}

#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

impl Server {
    /// Checks that the server lists the model. Without a name, it is the server's only model. A server with `https://` is not looked at.
    pub(crate) fn look(url: &str, model: Option<&str>) -> Result<Self, EndpointsError> {
        let refused = |reason: String| EndpointsError::Server {
            url: url.to_owned(),
            reason,
        };
        let Some(address) = url.strip_prefix("http://") else {
            if !url.starts_with("https://") {
                return Err(refused("its address begins with http:// or https://".to_owned()));
            }
            let model = model.ok_or_else(|| refused("the model's name is needed".to_owned()))?;
            return Ok(Self {
                program: None,
                model: model.to_owned(),
            });
        };
        let (host, path) = address.split_once('/').unwrap_or((address, ""));
        let path = format!("/{path}").trim_end_matches('/').to_owned();
        let answer = get(host, &format!("{path}/v1/models")).map_err(|error| refused(error.to_string()))?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer.as_str(), ""));
        let status = head.lines().next().unwrap_or_default();
        if status.split(' ').nth(1) != Some("200") {
            return Err(refused(format!(
                "GET /v1/models was answered with `{}`",
                status.trim()
            )));
        }
        let models: Models = serde_json::from_str(body)
            .map_err(|error| refused(format!("GET /v1/models returned no list of models: {error}")))?;
        let names: Vec<&str> = models.data.iter().map(|model| model.id.as_str()).collect();
        let model = match (model, &names[..]) {
            (Some(model), names) if names.contains(&model) => model,
            (Some(model), names) => {
                return Err(refused(format!("it serves {}, not {model}", names.join(", "))));
            }
            (None, [only]) => only,
            (None, names) => {
                return Err(refused(format!(
                    "it serves {} models: {}",
                    names.len(),
                    names.join(", ")
                )));
            }
        };
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("server")
                .then(|| value.trim().to_owned())
        };
        Ok(Self {
            program: head.lines().find_map(header),
            model: model.to_owned(),
        })
    }

    /// Returns whether the server closes connections after streams, although it announces that it keeps them. The client then loses the next
    /// request, and with it the rest of the conversation.
    pub(crate) fn closes_streams(&self) -> bool {
        self.program
            .as_ref()
            .is_some_and(|program| program.starts_with("llama.cpp"))
    }
}

/// Returns the answer, with its head. In HTTP/1.0 it ends with the connection and has no chunks.
fn get(host: &str, path: &str) -> io::Result<Vec<u8>> {
    let with_port = if host.contains(':') {
        host.to_owned()
    } else {
        format!("{host}:80")
    };
    let mut last = io::Error::other("its name has no address");
    for address in with_port.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(mut connection) => {
                connection.set_read_timeout(Some(PATIENCE))?;
                connection.set_write_timeout(Some(PATIENCE))?;
                write!(
                    connection,
                    "GET {path} HTTP/1.0\r\nHost: {host}\r\nAccept: */*\r\n\r\n"
                )?;
                let mut answer = Vec::new();
                let _ = connection.take(MAX_ANSWER).read_to_end(&mut answer)?;
                return Ok(answer);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
