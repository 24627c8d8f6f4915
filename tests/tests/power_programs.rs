//! Faults of Regatta's own power server and client: what they refuse, and what they leave. Good sessions are in `power`.
//!
//! The debug switch shortens the waits, because no session here is complete enough for the checker.

#![expect(clippy::expect_used, reason = "test code")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::Duration,
};

use regatta_power::{
    ntp,
    server_conf::{AnalyzerConf, ServerConf},
};
use regatta_test_support::small_disk::SmallDisk;
use regatta_tests::{
    Process, eventually, free_port, network_namespace, power_sessions::write_simulated_ptd, printed, regatta,
};

/// The protocol's first lines.
const CLIENT: &str = "mlcommons/power client v3";
const SERVER: &str = "mlcommons/power server v3";
const NEW: &str = "new,lab,5b4e5bb3-5a46-4b06-b71e-9b3e8ea9b2f2";

/// A server with a simulated PTDaemon.
struct Server {
    process: Process,
    port: u16,
    directory: PathBuf,
}

impl Server {
    /// Starts a server and waits until it accepts clients.
    fn start(directory: &Path, options: &str, temporary: Option<&Path>) -> Self {
        let (mut command, port) = Self::command(directory, options);
        if let Some(temporary) = temporary {
            command.env("TMPDIR", temporary);
        }
        let process = Process::start(&mut command, &directory.join("server.txt"));
        let server = Self {
            process,
            port,
            directory: directory.to_owned(),
        };
        server.wait_for("Ready to accept connections");
        server
    }

    fn command(directory: &Path, options: &str) -> (Command, u16) {
        fs::create_dir_all(directory.join("tmp")).expect("a directory");
        let program = directory.join("ptd");
        write_simulated_ptd(&program, &regatta(), options);
        let analyzer = AnalyzerConf {
            device_type: 49,
            device_port: "simulated".to_owned(),
            network_port: free_port(),
            ..AnalyzerConf::default()
        };
        let mut conf = ServerConf::new("127.0.0.1", &program.display().to_string(), analyzer);
        conf.listen = (Ipv4Addr::LOCALHOST.into(), free_port());
        let file = directory.join("server.conf");
        fs::write(&file, conf.render().expect("a configuration")).expect("server.conf");
        let mut command = Command::new(regatta());
        command
            .args(["power", "server", "-c"])
            .arg(file)
            .env("TMPDIR", directory.join("tmp"))
            .env("MLPP_DEBUG", "1");
        (command, conf.listen.1)
    }

    fn wait_for(&self, words: &str) {
        eventually(words, 60, || self.process.output().contains(words));
    }

    fn connect(&self) -> Client {
        Client::connect(self.port)
    }

    /// A client that is ready to begin a session.
    fn greeted(&self) -> Client {
        let mut client = self.connect();
        assert_eq!(client.query(CLIENT), SERVER);
        client
    }

    /// A client whose ranging run is measured, and the session's name.
    fn measuring(&self) -> (Client, String) {
        let mut client = self.greeted();
        let name = client.begin();
        assert_eq!(client.query(&format!("session,{name},start,ranging")), "OK");
        (client, name)
    }

    fn interrupt(&self) {
        let pid = i32::try_from(self.process.id()).expect("a process id");
        let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    }

    /// Waits until the meter was stopped, its ranges are as before, and PTDaemon has ended.
    fn expect_restored(&self) {
        self.wait_for("`Stop`: `Stopping untimed measurement`");
        eventually("the ranges of before", 20, || {
            let output = self.process.output();
            let stopped = output.rfind("`Stop`").expect("it was stopped");
            let rest = &output[stopped..];
            rest.contains("`SR,V,300.000000`: `Range V changed`")
                && rest.contains("`SR,A,5.000000`: `Range A changed`")
                && rest.contains("PTDaemon 1 has ended")
        });
        let program = self.directory.join("tmp").display().to_string();
        eventually("PTDaemon to end", 20, || ptd_processes(&program).is_empty());
    }
}

/// The simulated PTDaemons with a directory on their command line.
fn ptd_processes(directory: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines
        .filter(|line| line.contains("simulate-ptd") && line.contains(directory))
        .collect()
}

/// A client of bare lines.
struct Client {
    stream: TcpStream,
    lines: BufReader<TcpStream>,
}

impl Client {
    fn connect(port: u16) -> Self {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the server listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a timeout");
        let lines = BufReader::new(stream.try_clone().expect("a second handle"));
        Self { stream, lines }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    fn receive(&mut self) -> String {
        let mut line = String::new();
        // A reset also ends the connection.
        let _ = self.lines.read_line(&mut line);
        line.trim_end().to_owned()
    }

    fn query(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes());
        self.receive()
    }

    fn begin(&mut self) -> String {
        let reply = self.query(NEW);
        let session = reply.strip_prefix("OK ").and_then(|rest| rest.split_once(','));
        session.expect("a session").0.to_owned()
    }

    fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        let _ = self.lines.read_to_end(&mut rest);
        rest.is_empty()
    }
}

#[test]
fn the_server_survives_every_client() {
    if !network_namespace::continues_inside("the_server_survives_every_client") {
        return;
    }
    ntp::answer_requests(SocketAddr::from(([127, 0, 0, 1], ntp::PORT))).expect("the namespace's port 123");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(directory.path(), "", None);
    hostile_lines(&server);
    a_second_client(&server);
    a_client_that_leaves(&server);
    steps_out_of_order(&server);
    // The server still serves a client afterwards.
    assert!(server.greeted().query("time").parse::<f64>().is_ok());
    an_interrupt(server);
    let left = fs::read_dir(directory.path().join("tmp"))
        .expect("a directory")
        .count();
    assert_eq!(left, 0, "the server removes its files");
}

fn hostile_lines(server: &Server) {
    for magic in ["mlcommons/power client v2", "GET / HTTP/1.1", ""] {
        let mut client = server.connect();
        assert_eq!(client.query(magic), SERVER);
        assert!(client.is_closed(), "{magic}");
    }
    server.wait_for("introduces itself as \"mlcommons/power client v2\"");
    let mut client = server.connect();
    client.send(&[b'x'; 100_000]);
    assert!(client.is_closed());
    server.wait_for("a line of more than 4096 bytes");
    let mut client = server.greeted();
    client.send(b"\xff\xfe\0\r\n");
    assert!(client.receive().starts_with("Error"));
    let name = client.begin();
    for (line, words) in [
        (
            format!("download,{name},power/../../../../etc/passwd"),
            "no such file",
        ),
        (format!("download,{name},/etc/passwd"), "no such file"),
        ("download,../..,power/server.json".to_owned(), "unknown session"),
        ("cleanup,..".to_owned(), "unknown session"),
        ("session,other,start,ranging".to_owned(), "unknown session"),
        (NEW.replace("lab", "../lab"), "invalid label"),
        ("set_ntp".to_owned(), "sets no clock"),
    ] {
        let reply = client.query(&line);
        assert!(
            reply.starts_with("Error") && reply.contains(words),
            "{line}: {reply}"
        );
    }
    // A file that is not there yet is an error in place of its length.
    assert!(
        client
            .query(&format!("download,{name},power/server.json"))
            .starts_with("Error")
    );
}

fn a_second_client(server: &Server) {
    let mut first = server.greeted();
    let reply = server.connect().query(CLIENT);
    assert!(
        reply.starts_with("Error: this server serves 127.0.0.1, and one client at a time"),
        "{reply}"
    );
    let refused = client(server.port, &server.directory.join("second"), "true");
    let words = printed(&refused);
    assert!(
        refused.status.code() == Some(3)
            && words.contains("one client at a time")
            && words.contains("wait for the other"),
        "{words}"
    );
    assert!(
        first.query("time").parse::<f64>().is_ok(),
        "the first client notices nothing"
    );
}

fn a_client_that_leaves(server: &Server) {
    let (client, _) = server.measuring();
    client.stream.shutdown(Shutdown::Both).expect("it is connected");
    server.wait_for("has failed: the client is gone");
    server.expect_restored();
}

fn steps_out_of_order(server: &Server) {
    let (mut client, name) = server.measuring();
    for step in ["start,testing", "stop,testing"] {
        let reply = client.query(&format!("session,{name},{step}"));
        assert!(reply.contains("not the time for this step"), "{step}: {reply}");
    }
    assert_eq!(
        client.query(&format!("session,{name},start,ranging")),
        "OK",
        "again"
    );
}

fn an_interrupt(mut server: Server) {
    let (_client, _) = server.measuring();
    server.interrupt();
    eventually("the server to end", 30, || !server.process.is_running());
    server.expect_restored();
}

#[test]
fn a_server_says_what_is_wrong_with_its_meter_and_its_disk() {
    if !network_namespace::continues_inside("a_server_says_what_is_wrong_with_its_meter_and_its_disk") {
        return;
    }
    ntp::answer_requests(SocketAddr::from(([127, 0, 0, 1], ntp::PORT))).expect("the namespace's port 123");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path();
    thread::scope(|scope| {
        scope.spawn(|| a_ptd_that_ends(&directory.join("crash")));
        scope.spawn(|| a_refused_range(&directory.join("range")));
        scope.spawn(|| a_missing_ptd(&directory.join("missing")));
        scope.spawn(|| a_full_disk(&directory.join("disk")));
        scope.spawn(|| a_clock_server_that_is_gone(&directory.join("clock")));
    });
}

fn a_ptd_that_ends(directory: &Path) {
    let server = Server::start(directory, "--fault crash=ranging:0", None);
    // The client sees it while its workload runs, and ends that.
    let output = client(server.port, &directory.join("session"), "sleep 60");
    let words = printed(&output);
    assert!(
        output.status.code() == Some(3) && words.contains("the power server is gone"),
        "{words}"
    );
    server.wait_for("PTDaemon 1 has ended (exit status: 70); its last output: FAKEPTD: simulated crash");
    assert!(
        server.greeted().query("time").parse::<f64>().is_ok(),
        "the server goes on"
    );
}

fn a_refused_range(directory: &Path) {
    let server = Server::start(directory, "--fault refused-range", None);
    let (mut client, name) = server.measuring();
    thread::sleep(Duration::from_millis(1500));
    assert_eq!(client.query(&format!("session,{name},stop,ranging")), "OK");
    let reply = client.query(&format!("session,{name},start,testing"));
    assert!(
        reply.starts_with("Error: PTDaemon 1 answers `SR,V,230.000000`"),
        "{reply}"
    );
    server.expect_restored();
    let reply = client.query(&format!("session,{name},stop,testing"));
    assert!(
        reply.starts_with("Error"),
        "nothing of the session goes on: {reply}"
    );
}

fn a_missing_ptd(directory: &Path) {
    let (mut command, _) = Server::command(directory, "");
    fs::remove_file(directory.join("ptd")).expect("it is there");
    let output = command.output().expect("regatta starts");
    let words = printed(&output);
    assert!(
        output.status.code() == Some(3)
            && words.contains("cannot start PTDaemon")
            && words.contains("`ptd` in server.conf"),
        "{words}"
    );
}

fn a_full_disk(directory: &Path) {
    let Some(disk) = SmallDisk::mount("1m") else {
        return;
    };
    let server = Server::start(directory, "", Some(&disk.path));
    let (mut client, name) = server.measuring();
    thread::sleep(Duration::from_millis(1500));
    disk.fill();
    let reply = client.query(&format!("session,{name},stop,ranging"));
    let names_a_file = reply.starts_with(&format!("Error: cannot write {}", disk.path.display()));
    assert!(names_a_file && reply.contains("No space left"), "{reply}");
    server.wait_for("`Stop`: `Stopping untimed measurement`");
    fs::remove_file(disk.path.join("filler")).expect("the filler");
    assert!(client.query("time").parse::<f64>().is_ok(), "the server goes on");
}

fn a_clock_server_that_is_gone(directory: &Path) {
    let (mut command, _) = Server::command(directory, "");
    let file = directory.join("server.conf");
    let conf = fs::read_to_string(&file).expect("server.conf");
    fs::write(
        &file,
        conf.replace("ntpServer: 127.0.0.1", "ntpServer: 127.0.0.2"),
    )
    .expect("server.conf");
    let output = command.output().expect("regatta starts");
    let words = printed(&output);
    assert!(
        output.status.code() == Some(3) && words.contains("cannot get the time of the NTP server 127.0.0.2"),
        "{words}"
    );
}

#[test]
fn the_client_trusts_no_server() {
    if !network_namespace::continues_inside("the_client_trusts_no_server") {
        return;
    }
    ntp::answer_requests(SocketAddr::from(([127, 0, 0, 1], ntp::PORT))).expect("the namespace's port 123");
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, replies, words) in [
        (
            "version",
            &["mlcommons/power server v4"][..],
            "does not accept this client: `mlcommons/power server v4`",
        ),
        ("gone", &[], "the power server is gone"),
        ("clock", &[SERVER, "1"], "differ by"),
        ("garbage", &[SERVER, "OK"], "answers `time` with `OK`"),
        (
            "name",
            &[SERVER, "NOW", "OK ../../up,5b4e5bb3-5a46-4b06-b71e-9b3e8ea9b2f2"],
            "answers `new,",
        ),
        ("id", &[SERVER, "NOW", "OK name,none"], "answers `new,"),
        ("refusal", &[SERVER, "NOW", "Error: exception"], "answers `new,"),
    ] {
        let output = client(hostile_server(replies), &directory.path().join(name), "true");
        let printed = printed(&output);
        assert!(
            output.status.code() == Some(3) && printed.contains(words),
            "{name}: {}\n{printed}",
            output.status
        );
    }
    assert!(!directory.path().join("up").exists());
    the_client_is_interrupted(&directory.path().join("interrupt"));
}

/// A server that gives these replies, one for each line, and leaves. `NOW` is the time.
fn hostile_server(replies: &'static [&'static str]) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("a port").port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut lines = BufReader::new(stream.try_clone().expect("a second handle")).lines();
        for reply in replies {
            let _ = lines.next();
            let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let now = time.expect("after 1970").as_secs_f64().to_string();
            let reply = reply.replace("NOW", &now);
            let _ = stream.write_all(format!("{reply}\r\n").as_bytes());
        }
        let _ = lines.next();
    });
    port
}

/// Ctrl-C ends the workload, and the server stops the meter.
fn the_client_is_interrupted(directory: &Path) {
    let server = Server::start(directory, "", None);
    let mut command = client_command(server.port, &directory.join("session"), "sleep 61.25");
    let log = directory.join("client.txt");
    let mut process = Process::start(&mut command, &log);
    eventually("the workload to run", 60, || {
        process.output().contains("Running the workload")
    });
    let pid = i32::try_from(process.id()).expect("a process id");
    let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    eventually("the client to end", 30, || !process.is_running());
    assert!(
        process.output().contains("the session was interrupted"),
        "{}",
        process.output()
    );
    server.expect_restored();
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let workload = processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .find(|line| line == b"sleep\x0061.25\0");
    assert_eq!(workload, None, "the workload has ended");
}

fn client(port: u16, directory: &Path, workload: &str) -> Output {
    client_command(port, directory, workload)
        .output()
        .expect("regatta starts")
}

fn client_command(port: u16, directory: &Path, workload: &str) -> Command {
    fs::create_dir_all(directory).expect("a directory");
    let mut command = Command::new(regatta());
    command
        .args([
            "power",
            "client",
            "-a",
            "127.0.0.1",
            "-n",
            "127.0.0.1",
            "-w",
            workload,
        ])
        .args(["-p", &port.to_string()])
        .arg("-L")
        .arg(directory.join("logs"))
        .arg("-o")
        .arg(directory.join("out"));
    command
}
