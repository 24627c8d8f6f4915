//! A meter: its PTDaemon, the connection to it, and the commands and replies so far.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{error::ServerError, initial_ranges::InitialRanges, ptd_process::PtdProcess};
use crate::{
    protocol::{
        connection::{Connection, ConnectionError, LineLimits},
        description::{PtdMessage, PtdSummary},
        file_error::FileError,
        session_log::SessionLog,
    },
    ptd::reply,
    server_conf::AnalyzerConf,
};

/// How long PTDaemon may take until it listens. It takes 17 s with a WT333E over USB.
const START: Duration = Duration::from_secs(30);
/// How long it may take to answer. Reading a meter takes a second or two.
const REPLY: Duration = Duration::from_secs(20);
/// The same for what restores the meter, which a hung PTDaemon must not delay.
const RESTORE: Duration = Duration::from_secs(5);
/// How long a connection to its port may take.
const CONNECT: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(100);
/// The time between the end of the connection and that of the process.
const EXIT: Duration = Duration::from_secs(2);
/// The longest line: a sample of a meter with six channels is shorter.
const MAX_LINE: usize = 16 << 10;

/// Called while something takes its time; its error ends the wait.
pub(super) type Watch<'a> = dyn FnMut() -> Result<(), ServerError> + 'a;

/// A meter.
#[derive(Debug)]
pub(super) struct Analyzer {
    /// Counted from 1, as in server.conf.
    pub(super) number: usize,
    /// Its section in server.conf.
    pub(super) conf: AnalyzerConf,
    /// The file with PTDaemon's own line per sample.
    pub(super) samples: PathBuf,
    /// The file with what PTDaemon prints.
    pub(super) console: PathBuf,
    program: String,
    arguments: Vec<String>,
    messages: Vec<PtdMessage>,
    running: Option<RunningPtd>,
    console_error: Option<FileError>,
    log: SessionLog,
}

/// A PTDaemon that runs, and the ranges that the meter had before.
#[derive(Debug)]
struct RunningPtd {
    // The connection is closed first.
    connection: Connection,
    process: PtdProcess,
    initial: InitialRanges,
    is_measuring: bool,
}

impl Analyzer {
    pub(super) fn new(
        number: usize,
        program: &str,
        conf: &AnalyzerConf,
        samples: &Path,
        console: &Path,
        log: &SessionLog,
    ) -> Self {
        Self {
            number,
            conf: conf.clone(),
            samples: samples.to_owned(),
            console: console.to_owned(),
            program: program.to_owned(),
            arguments: conf.arguments(&samples.display().to_string()),
            messages: Vec::new(),
            running: None,
            console_error: None,
            log: log.clone(),
        }
    }

    /// Starts PTDaemon if it does not run, and reads the meter's identity and ranges.
    pub(super) fn start(&mut self, watch: &mut Watch<'_>) -> Result<(), ServerError> {
        if self.running.is_some() {
            return Ok(());
        }
        let (number, port) = (self.number, self.conf.port());
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpStream::connect_timeout(&address, CONNECT).is_ok() {
            return Err(ServerError::PtdPort { number, port });
        }
        self.log.info(&format!(
            "running PTDaemon {number}: {} {}",
            self.program,
            self.arguments.join(" ")
        ));
        let mut process = PtdProcess::start(&self.program, &self.arguments, &self.console)?;
        let connection = connect(&mut process, address, number, watch)?;
        self.running = Some(RunningPtd {
            connection,
            process,
            initial: InitialRanges::default(),
            is_measuring: false,
        });
        let hello = self.query("Hello")?;
        if hello != reply::HELLO {
            return Err(self.refusal("Hello", hello));
        }
        self.query("Identify")?;
        let ranges = self.query("RR")?;
        let initial = InitialRanges::read(&ranges).ok_or_else(|| self.refusal("RR", ranges.clone()))?;
        if let Some(running) = &mut self.running {
            running.initial = initial;
        }
        Ok(())
    }

    /// Asks PTDaemon, and returns its reply, which may be an error.
    pub(super) fn query(&mut self, command: &str) -> Result<String, ServerError> {
        self.query_within(command, REPLY)
    }

    /// Gives PTDaemon an order. A reply with `Error` is a failure.
    pub(super) fn order(&mut self, command: &str) -> Result<(), ServerError> {
        let reply = self.query(command)?;
        match reply.contains("Error") {
            true => Err(self.refusal(command, reply)),
            false => Ok(()),
        }
    }

    /// Starts a measurement with one sample per second, whose lines have this mark.
    pub(super) fn measure(&mut self, mark: &str) -> Result<(), ServerError> {
        // Whatever the reply is, a measurement may go on.
        self.set_measuring(true);
        self.order(&format!("Go,1000,0,{mark}"))
    }

    /// Ends the measurement.
    pub(super) fn stop(&mut self) -> Result<(), ServerError> {
        self.order("Stop")?;
        self.set_measuring(false);
        Ok(())
    }

    /// Receives further lines of a reply.
    pub(super) fn lines(&mut self, count: usize, command: &str) -> Result<Vec<String>, ServerError> {
        (0..count).map(|_| self.line(command, REPLY)).collect()
    }

    /// Fails when PTDaemon has ended.
    pub(super) fn check(&mut self) -> Result<(), ServerError> {
        let number = self.number;
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        if let Some(end) = running.process.end() {
            let words = running.process.last_words();
            return Err(ServerError::PtdEnded { number, end, words });
        }
        Ok(())
    }

    /// Fails when the file of what PTDaemon prints could not be written.
    pub(super) fn check_console(&mut self) -> Result<(), FileError> {
        let found = self
            .running
            .as_ref()
            .map_or(Ok(()), |running| running.process.check_output(&self.console));
        found.and(self.console_error.take().map_or(Ok(()), Err))
    }

    /// Ends the measurement, restores the meter's ranges, and ends PTDaemon. A failure is logged, and the remaining steps are still done.
    pub(super) fn end(&mut self) {
        let Some(running) = &mut self.running else {
            return;
        };
        let (measures, initial) = (running.is_measuring, running.initial.clone());
        if running.process.end().is_none() {
            let restore = [
                format!("SR,V,{}", initial.volts),
                format!("SR,A,{}", initial.amps),
            ];
            for command in measures.then(|| "Stop".to_owned()).into_iter().chain(restore) {
                let failed = match self.query_within(&command, RESTORE) {
                    Ok(reply) => reply.contains("Error").then_some(reply),
                    Err(error) => Some(error.to_string()),
                };
                if let Some(reason) = failed {
                    self.log.warn(&format!(
                        "the meter {} may be left changed: `{command}`: {reason}",
                        self.number
                    ));
                    break;
                }
            }
        }
        if let Some(mut running) = self.running.take() {
            running.process.terminate();
            // Its last lines may not have been written.
            self.console_error = running.process.check_output(&self.console).err();
        }
        self.log.info(&format!("PTDaemon {} has ended", self.number));
    }

    /// What was asked and answered.
    pub(super) fn messages(&self) -> &[PtdMessage] {
        &self.messages
    }

    /// The meter as `server.json` has it.
    pub(super) fn summary(&self) -> PtdSummary {
        let conf = &self.conf;
        let mut command = vec![self.program.clone()];
        command.extend(self.arguments.clone());
        PtdSummary {
            command,
            device_type: conf.device_type,
            interface_flag: conf.interface_flag.clone(),
            dc_flag: conf.dc_flag.clone(),
            device_port: conf.device_port.clone(),
            channel: (!conf.channel.is_empty()).then(|| conf.channel.clone()),
        }
    }

    /// The error for a reply that was not expected.
    pub(super) fn refusal(&self, command: &str, reply: String) -> ServerError {
        ServerError::PtdRefusal {
            number: self.number,
            command: command.to_owned(),
            reply,
        }
    }

    fn set_measuring(&mut self, measures: bool) {
        if let Some(running) = &mut self.running {
            running.is_measuring = measures;
        }
    }

    fn query_within(&mut self, command: &str, silence: Duration) -> Result<String, ServerError> {
        if let Some(running) = &mut self.running
            && let Err(error) = running.connection.send(command)
        {
            return Err(self.lost(command, error));
        }
        let reply = self.line(command, silence)?;
        self.log
            .info(&format!("PTDaemon {}: `{command}`: `{reply}`", self.number));
        self.messages.push(PtdMessage {
            cmd: command.to_owned(),
            reply: reply.clone(),
        });
        Ok(reply)
    }

    fn line(&mut self, command: &str, silence: Duration) -> Result<String, ServerError> {
        let limits = LineLimits {
            length: MAX_LINE,
            silence: Some(silence),
        };
        let Some(running) = &mut self.running else {
            return Err(self.lost(command, ConnectionError::Closed));
        };
        let line = running.connection.receive(limits, &mut || Ok(()));
        line.map_err(|error| self.lost(command, error))
    }

    /// The error for a connection that brings nothing: PTDaemon's end where that is the reason.
    fn lost(&mut self, command: &str, source: ConnectionError) -> ServerError {
        let number = self.number;
        let patience = match source {
            ConnectionError::Closed | ConnectionError::Lost(_) => EXIT,
            _ => Duration::ZERO,
        };
        if let Some(running) = &mut self.running
            && let Some(end) = running.process.end_within(patience)
        {
            let words = running.process.last_words();
            return ServerError::PtdEnded { number, end, words };
        }
        ServerError::PtdReply {
            number,
            command: command.to_owned(),
            source,
        }
    }
}

impl Drop for Analyzer {
    fn drop(&mut self) {
        self.end();
    }
}

/// Connects to a PTDaemon that starts.
fn connect(
    process: &mut PtdProcess,
    address: SocketAddr,
    number: usize,
    watch: &mut Watch<'_>,
) -> Result<Connection, ServerError> {
    let begun = Instant::now();
    loop {
        if let Ok(stream) = TcpStream::connect_timeout(&address, CONNECT)
            && let Ok(connection) = Connection::new(stream)
        {
            return Ok(connection);
        }
        if let Some(end) = process.end() {
            let words = process.last_words();
            return Err(ServerError::PtdEnded { number, end, words });
        }
        if begun.elapsed() > START {
            let port = address.port();
            return Err(ServerError::PtdSilent { number, port });
        }
        watch()?;
        std::thread::sleep(PAUSE);
    }
}
