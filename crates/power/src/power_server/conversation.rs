//! The conversation with one client: its commands, one after the other, and their replies.

use std::{net::SocketAddr, sync::atomic::AtomicBool, time::Duration};

use regatta_text::ErrorChain;
use uuid::Uuid;

use super::{
    PowerServer,
    command::{Command, InvalidCommand, Step},
    error::{ServerError, watch},
    session::Session,
};
use crate::protocol::{
    CLIENT_MAGIC, ERROR, OK, SERVER_MAGIC,
    connection::{Connection, ConnectionError, LineLimits},
    description::{Description, Message},
    file_transfer::{TransferError, send_file},
    session_log::SessionLog,
    session_name::new_session_name,
    timestamps::now,
};

/// The longest command; the protocol's have about 100 bytes.
const MAX_LINE: usize = 4 << 10;
/// How long a client may take to introduce itself. After that only TCP decides whether it is there: a workload may take a day.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client may take to read the last reply.
const FAREWELL: Duration = Duration::from_secs(1);

pub(super) struct Conversation<'a> {
    server: &'a PowerServer,
    log: SessionLog,
    interrupted: &'a AtomicBool,
    connection: Connection,
    /// Until the session is complete.
    description: Option<Description>,
    session: Option<Session>,
    ends_server: bool,
}

impl<'a> Conversation<'a> {
    pub(super) fn new(server: &'a PowerServer, connection: Connection, interrupted: &'a AtomicBool) -> Self {
        Self {
            server,
            log: server.new_log(),
            interrupted,
            connection,
            description: Some(Description::new(&server.program)),
            session: None,
            ends_server: false,
        }
    }

    /// Answers the client until it leaves. Returns whether it has asked the server to end.
    pub(super) fn run(mut self, client: SocketAddr) -> bool {
        self.log.info(&format!("client {client} is connected"));
        let ended = self.talk();
        let is_complete = self.description.is_none();
        match (&ended, &self.session) {
            (Err(ServerError::Client(ConnectionError::Closed)), None) => self.log.info("the client has left"),
            (Err(ServerError::Client(ConnectionError::Closed)), _) if is_complete => {
                self.log.info("the client has left");
            }
            (Err(error), Some(session)) => {
                let reason = ErrorChain(error);
                self.log
                    .error(&format!("session {} has failed: {reason}", session.name));
            }
            (Err(error), None) => self.log.error(&ErrorChain(error).to_string()),
            (Ok(()), _) => {}
        }
        // Stops and restores the meters.
        drop(self.session.take());
        self.connection.close_politely(FAREWELL);
        self.ends_server
    }

    fn talk(&mut self) -> Result<(), ServerError> {
        let (magic, time) = self.receive(Some(HANDSHAKE))?;
        if magic != CLIENT_MAGIC {
            self.log.error(&format!(
                "the client introduces itself as {magic:?} instead of {CLIENT_MAGIC:?}"
            ));
            // The official server logs its version in any case.
            self.connection.send(SERVER_MAGIC)?;
            return Ok(());
        }
        self.reply(&magic, time, SERVER_MAGIC)?;
        loop {
            let (line, time) = self.receive(None)?;
            self.log.info(&format!("command {line:?}"));
            match self.answer(&line) {
                Ok(None) => {}
                Ok(Some(reply)) => self.reply(&line, time, &reply)?,
                Err(error) if error.ends_conversation() => return Err(error),
                Err(error) => {
                    let reason = ErrorChain(&error).to_string();
                    self.log.error(&reason);
                    // Nothing of a session goes on after a step that failed.
                    if let Some(session) = &mut self.session {
                        session.end();
                    }
                    self.reply(&line, time, &format!("{ERROR}: {reason}"))?;
                }
            }
        }
    }

    /// Waits for a command. While the workload runs, PTDaemon is watched.
    fn receive(&mut self, silence: Option<Duration>) -> Result<(String, f64), ServerError> {
        let limits = LineLimits {
            length: MAX_LINE,
            silence,
        };
        let (session, interrupted) = (&mut self.session, self.interrupted);
        let line = self.connection.receive(limits, &mut || {
            watch(interrupted)?;
            session.as_mut().map_or(Ok(()), Session::check_meters)
        })?;
        Ok((line, now()))
    }

    fn reply(&mut self, command: &str, time: f64, reply: &str) -> Result<(), ServerError> {
        self.log.info(&format!("reply {reply:?}"));
        if let Some(description) = &mut self.description {
            description.message(Message {
                cmd: command.to_owned(),
                cmd_time: time,
                reply: reply.to_owned(),
                reply_time: now(),
            });
        }
        Ok(self.connection.send(reply)?)
    }

    /// Executes a command, and returns the reply, if a file is not the reply.
    fn answer(&mut self, line: &str) -> Result<Option<String>, ServerError> {
        let command = match Command::read(line) {
            Ok(command) => command,
            Err(InvalidCommand(reply)) => return Ok(Some(reply.to_owned())),
        };
        let reply = match command {
            Command::Time => now().to_string(),
            Command::SetNtp => format!("{ERROR}: this server sets no clock; run chrony or ntpd"),
            Command::StopServer => {
                self.ends_server = true;
                OK.to_owned()
            }
            Command::New { label, client } => self.begin(&label, client)?,
            Command::Step { session, step } => {
                let is_this = |own: &Session| session == "*" || session == own.name;
                match self.session.as_ref().is_some_and(is_this) {
                    true => self.step(&step)?,
                    false => format!("{ERROR}: unknown session"),
                }
            }
            Command::Download { session, file } => return self.send(&session, file),
            Command::CleanUp { session } => match self.session.take_if(|own| own.name == session) {
                Some(session) => {
                    drop(session);
                    OK.to_owned()
                }
                None => format!("{ERROR}: unknown session"),
            },
        };
        Ok(Some(reply))
    }

    fn begin(&mut self, label: &str, client: Uuid) -> Result<String, ServerError> {
        // A session before is dropped, as by the official server; its meters are stopped first.
        drop(self.session.take());
        let Some(description) = &mut self.description else {
            return Ok(format!("{ERROR}: one session per connection"));
        };
        let server = self.server;
        let name = new_session_name(label);
        let directory = server.temporary.path().join(&name);
        let analyzers = server.analyzers(&directory.join("power"), &self.log);
        description.meters(
            analyzers.iter().map(|analyzer| analyzer.summary()).collect(),
            server.debug,
        );
        let id = Uuid::now_v7();
        description.name(&name, client, id);
        let mode = server.conf.ranging_mode;
        self.session = Some(Session::new(
            name.clone(),
            directory,
            analyzers,
            mode,
            server.settle(),
        )?);
        Ok(format!("{OK} {name},{id}"))
    }

    fn step(&mut self, step: &Step) -> Result<String, ServerError> {
        let (Some(session), Some(description)) = (&mut self.session, &mut self.description) else {
            return Ok(format!("{ERROR}: the session is complete"));
        };
        let (connection, interrupted) = (&self.connection, self.interrupted);
        let mut watch = || {
            watch(interrupted)?;
            match connection.is_closed() {
                true => Err(ServerError::Client(ConnectionError::Closed)),
                false => Ok(()),
            }
        };
        let is_in_order = match step {
            Step::Start(part, manual) => session.start(*part, *manual, description, &mut watch)?,
            Step::Stop(part) => session.stop(*part, description, &mut watch)?,
            Step::Done => {
                session.end();
                session.write(description, &self.log.text())?;
                self.description = None;
                true
            }
        };
        Ok(match is_in_order {
            true => OK.to_owned(),
            false => format!("{ERROR}: not the time for this step"),
        })
    }

    fn send(&mut self, session: &str, file: &str) -> Result<Option<String>, ServerError> {
        let Some(own) = self.session.as_ref().filter(|own| own.name == session) else {
            return Ok(Some(format!("{ERROR}: unknown session")));
        };
        match send_file(&mut self.connection, &own.directory.join(file)) {
            Ok(()) => Ok(None),
            Err(TransferError::Connection(error)) => Err(error.into()),
            Err(error) => Err(error.into()),
        }
    }
}
